"""The client for user programs: Producer, Consumer, their results, Topics, and Query. Errors: `tidemark.errors`.

Sending and reading single messages needs only gRPC and orjson. Tables need numpy and pyarrow, which are imported at
their first use.
"""

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
