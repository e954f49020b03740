"""Groups of consumers: leaving (35), members (38), changes (40), queue locks (41, 42)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import orjson

from tidemark.remoting.field_table import TEXT, FieldTable, HeaderField
from tidemark.remoting.frame import Buffer
from tidemark.remoting.json_body import JsonObject, parse_body


class UnregisterClient(NamedTuple):
    """Code 35: the client leaves its groups."""

    client_id: str
    producer_group: str | None = None
    consumer_group: str | None = None


UNREGISTER_CLIENT = FieldTable(
    UnregisterClient,
    HeaderField("client_id", "clientID", TEXT),
    HeaderField("producer_group", "producerGroup", TEXT),
    HeaderField("consumer_group", "consumerGroup", TEXT),
)


class ConsumerGroup(NamedTuple):
    """Codes 38 (list the members) and 40 (the members have changed)."""

    consumer_group: str


CONSUMER_GROUP = FieldTable(ConsumerGroup, HeaderField("consumer_group", "consumerGroup", TEXT))


class BrokerQueue(NamedTuple):
    """A queue as clients name it."""

    broker_name: str
    queue_id: int
    topic: str


class QueueLock(NamedTuple):
    """Codes 41 (lock queues for the client) and 42 (release them)."""

    client_id: str
    consumer_group: str
    queues: tuple[BrokerQueue, ...]
    only_this_broker: bool = False


def parse_consumer_list(body: Buffer) -> tuple[str, ...]:
    """Return the client ids of the answer to 38. Raises FieldIllegalError."""
    return parse_body(body).texts("consumerIdList")


def consumer_list_body(client_ids: Iterable[str]) -> bytes:
    """Return the body of the answer to 38. An id is listed once: clients divide the queues by the list's length."""
    return orjson.dumps({"consumerIdList": list(dict.fromkeys(client_ids))})


def parse_queue_lock(body: Buffer) -> QueueLock:
    """Parse the body of 41 or 42. Raises FieldIllegalError."""
    found = parse_body(body)
    return QueueLock(
        found.text("clientId"),
        found.text("consumerGroup"),
        _queues(found, "mqSet"),
        found.flag("onlyThisBroker", False),
    )


def queue_lock_body(lock: QueueLock) -> bytes:
    """Return the body of 41 or 42."""
    return orjson.dumps(
        {
            "clientId": lock.client_id,
            "consumerGroup": lock.consumer_group,
            "mqSet": list(map(_queue_data, lock.queues)),
            "onlyThisBroker": lock.only_this_broker,
        }
    )


def parse_locked_queues(body: Buffer) -> tuple[BrokerQueue, ...]:
    """Return the granted queues of the answer to 41. Raises FieldIllegalError."""
    return _queues(parse_body(body), "lockOKMQSet")


def locked_queues_body(queues: Iterable[BrokerQueue]) -> bytes:
    """Return the body of the answer to 41: the granted queues, with the broker names of the request."""
    return orjson.dumps({"lockOKMQSet": list(map(_queue_data, queues))})


def _queues(found: JsonObject, name: str) -> tuple[BrokerQueue, ...]:
    return tuple(
        BrokerQueue(queue.text("brokerName"), queue.integer("queueId"), queue.text("topic"))
        for queue in found.objects(name)
    )


def _queue_data(queue: BrokerQueue) -> dict[str, str | int]:
    return {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}
