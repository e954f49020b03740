"""The client for user programs: Producer, Consumer, their results, Topics, and Query. Errors: `tidemark.errors`.

Sending and reading single messages needs only gRPC and orjson. Tables need numpy and pyarrow, which are imported at
their first use. Each class is imported at its first use, too: programs and services need only some of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.client.consumer.async_consumer import AsyncConsumer
    from tidemark.client.consumer.consumer import Consumer
    from tidemark.client.message import Message
    from tidemark.client.message_queue import MessageQueue
    from tidemark.client.producer.accumulator import Accumulation
    from tidemark.client.producer.async_producer import AsyncProducer
    from tidemark.client.producer.compression import Compression
    from tidemark.client.producer.producer import Producer
    from tidemark.client.producer.send_hooks import Hooks
    from tidemark.client.received_message import PulledPage, ReceivedMessage, StoreQueue, TopicQueue
    from tidemark.client.rest.page import RecordsPage
    from tidemark.client.rest.query import Query
    from tidemark.client.send_result import SendResult, SendStatus
    from tidemark.client.tracing.spans import processing
    from tidemark.client.wire.topic_admin import BATCH_QUEUE, Topic, Topics
    from tidemark.format.message_id import UniqueKey, decode_unique_key
    from tidemark.tls.credentials import Credentials

__all__ = [
    "BATCH_QUEUE",
    "Accumulation",
    "AsyncConsumer",
    "AsyncProducer",
    "Compression",
    "Consumer",
    "Credentials",
    "Hooks",
    "Message",
    "MessageQueue",
    "Producer",
    "PulledPage",
    "Query",
    "ReceivedMessage",
    "RecordsPage",
    "SendResult",
    "SendStatus",
    "StoreQueue",
    "Topic",
    "TopicQueue",
    "Topics",
    "UniqueKey",
    "decode_unique_key",
    "processing",
]

_MODULES = {
    "Accumulation": "tidemark.client.producer.accumulator",
    "AsyncConsumer": "tidemark.client.consumer.async_consumer",
    "AsyncProducer": "tidemark.client.producer.async_producer",
    "BATCH_QUEUE": "tidemark.client.wire.topic_admin",
    "Compression": "tidemark.client.producer.compression",
    "Consumer": "tidemark.client.consumer.consumer",
    "Credentials": "tidemark.tls.credentials",
    "Hooks": "tidemark.client.producer.send_hooks",
    "Message": "tidemark.client.message",
    "MessageQueue": "tidemark.client.message_queue",
    "Producer": "tidemark.client.producer.producer",
    "PulledPage": "tidemark.client.received_message",
    "Query": "tidemark.client.rest.query",
    "ReceivedMessage": "tidemark.client.received_message",
    "RecordsPage": "tidemark.client.rest.page",
    "SendResult": "tidemark.client.send_result",
    "SendStatus": "tidemark.client.send_result",
    "StoreQueue": "tidemark.client.received_message",
    "Topic": "tidemark.client.wire.topic_admin",
    "TopicQueue": "tidemark.client.received_message",
    "Topics": "tidemark.client.wire.topic_admin",
    "UniqueKey": "tidemark.format.message_id",
    "decode_unique_key": "tidemark.format.message_id",
    "processing": "tidemark.client.tracing.spans",
}

if not TYPE_CHECKING:  # for type checkers, only the names above exist

    def __getattr__(name):
        """Import the module of *name*."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value

    def __dir__():
        return [*globals(), *_MODULES]
