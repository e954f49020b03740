"""What a user's program imports: Producer, its results, topics, and a small Query. Errors: `tidemark.errors`.

Sending needs gRPC alone. What reads, and tables, need numpy and pyarrow: they are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from tidemark.client.accumulator import Accumulation
from tidemark.client.async_producer import AsyncProducer
from tidemark.client.compression import Compression
from tidemark.client.hooks import Hooks
from tidemark.client.message import Message
from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer import Producer
from tidemark.client.send_result import SendResult, SendStatus
from tidemark.client.topics import BATCH_QUEUE, Topic, Topics
from tidemark.format.message_id import UniqueKey, decode_unique_key

if TYPE_CHECKING:
    from tidemark.client.pages import RecordsPage
    from tidemark.client.query import Query

__all__ = [
    "BATCH_QUEUE",
    "Accumulation",
    "AsyncProducer",
    "Compression",
    "Hooks",
    "Message",
    "MessageQueue",
    "Producer",
    "Query",
    "RecordsPage",
    "SendResult",
    "SendStatus",
    "Topic",
    "Topics",
    "UniqueKey",
    "decode_unique_key",
]

_LATER = {"Query": "query", "RecordsPage": "pages"}  # name → module


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
