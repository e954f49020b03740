"""MemoryLog: topics in memory, with producers and consumers that have the client's interface. For unit tests.

It checks messages as the client does, chooses queues as the client does, and keeps order, offsets, groups and commits.
It has no network, so nothing ever fails or is late; delayed messages arrive at once. Test those with a TidemarkServer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidemark.testing.memory_async import AsyncMemoryConsumer, AsyncMemoryProducer
from tidemark.testing.memory_consumer import MemoryConsumer
from tidemark.testing.memory_producer import MemoryProducer
from tidemark.testing.memory_topics import MemoryTopics


class MemoryLog(MemoryTopics):
    """Topics in memory, with producers and consumers. queues: of a topic that a send creates."""

    def producer(self, **options: Any) -> MemoryProducer:
        """Return a producer; *options* are MemoryProducer's."""
        return MemoryProducer(self, **options)

    def consumer(self, topics: str | Iterable[str] = (), **options: Any) -> MemoryConsumer:
        """Return a consumer; *options* are MemoryConsumer's."""
        return MemoryConsumer(self, topics, **options)

    def async_producer(self, **options: Any) -> AsyncMemoryProducer:
        """Return a producer for asyncio; *options* are MemoryProducer's."""
        return AsyncMemoryProducer(self, **options)

    def async_consumer(self, topics: str | Iterable[str] = (), **options: Any) -> AsyncMemoryConsumer:
        """Return a consumer for asyncio; *options* are MemoryConsumer's."""
        return AsyncMemoryConsumer(self, topics, **options)
