"""Names of span attributes: OpenTelemetry's semantic conventions for messaging, then our own.

Defined here because the conventions' package moves names between versions, and a client does not need it.
"""

from __future__ import annotations

SYSTEM = "messaging.system"
DESTINATION = "messaging.destination.name"  # topic
PARTITION = "messaging.destination.partition.id"  # queue id, as text
OPERATION = "messaging.operation.name"  # send, append, index, pull, poll, process
OPERATION_TYPE = "messaging.operation.type"  # send, receive, process
MESSAGE_COUNT = "messaging.batch.message_count"
MESSAGE_ID = "messaging.message.id"
BODY_SIZE = "messaging.message.body.size"  # bytes
CONSUMER_GROUP = "messaging.consumer.group.name"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
ERROR_TYPE = "error.type"  # the stable reason

QUEUE_OFFSET = "tidemark.queue_offset"  # of the first message
PHYSICAL_OFFSET = "tidemark.physical_offset"  # of the first record
END_PHYSICAL_OFFSET = "tidemark.end_physical_offset"  # exclusive
DUPLICATE = "tidemark.duplicate"
REQUEST_ID = "tidemark.request_id"

TIDEMARK = "tidemark"  # the value of SYSTEM
