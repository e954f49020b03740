"""What a user's program imports: Producer, its results, topics, and a small Query. Errors: `tidemark.errors`."""

from tidemark.client.async_producer import AsyncProducer
from tidemark.client.message import Message
from tidemark.client.pages import RecordsPage
from tidemark.client.producer import Producer
from tidemark.client.query import Query
from tidemark.client.send_result import SendResult, SendStatus
from tidemark.client.topics import BATCH_QUEUE, Topic, Topics

__all__ = [
    "BATCH_QUEUE",
    "AsyncProducer",
    "Message",
    "Producer",
    "Query",
    "RecordsPage",
    "SendResult",
    "SendStatus",
    "Topic",
    "Topics",
]
