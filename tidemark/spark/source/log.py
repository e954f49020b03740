"""Log: interface to a store, implemented for its files and for the query service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import pyarrow as pa

from tidemark.client.received_message import TopicQueue
from tidemark.errors import OffsetOutOfRangeError, OffsetTooSmallError

BATCH_BYTES = 4 << 20  # stored bytes per Arrow batch


class Bounds(NamedTuple):
    """Readable range of a queue: min_offset ≤ n < max_offset."""

    min_offset: int
    max_offset: int


class QueueOffset(NamedTuple):
    """The place of a message."""

    queue: TopicQueue
    offset: int


class MessagePage(NamedTuple):
    """Messages of one queue, in order. damage: one line per omitted record."""

    messages: pa.RecordBatch  # columns of tidemark.read.messages.message_columns.SCHEMA, at least the requested ones
    next_offset: int
    damage: list[str]


class Log(Protocol):
    """One store for reading. Errors are StoreErrors: TopicNotFoundError, QueueIllegalError, UnavailableError."""

    def topics(self) -> list[str]:
        """Return the names of all topics."""
        ...

    def queues_of(self, topic: str) -> list[TopicQueue]:
        """Return the queues of *topic*."""
        ...

    def assigned(self, queue: TopicQueue) -> list[TopicQueue]:
        """Return *queue*; of several stores, that queue of each. It need not exist in a single store."""
        ...

    def bounds(self, queue: TopicQueue) -> Bounds:
        """Return the range of the queue that is readable now."""
        ...

    def offset_at(self, queue: TopicQueue, timestamp_ms: int) -> int | None:
        """Return the offset of the first message stored at or after this time; None if there is none."""
        ...

    def end_within(self, queue: TopicQueue, start: int, end: int, max_bytes: int) -> int:
        """Return the furthest end, at most *end*, with at most max_bytes from *start*; *start* if no message fits."""
        ...

    def pages(self, queue: TopicQueue, start: int, end: int, *, tags: frozenset[str] | None) -> Iterator[MessagePage]:
        """Yield the messages with start ≤ queue offset < end, all of them or those with one of *tags*.

        Raises OffsetTooSmallError if messages are deleted, OffsetOutOfRangeError if the queue ends before *end*.
        """
        ...

    def places_of_key(self, topic: str, key: str, most: int) -> list[QueueOffset] | None:
        """Return the places of all visible messages of *topic* with *key*, and possibly of some others.

        None: there are more than *most*, or the index does not have all of them
        """
        ...

    def wait_for(self, queue: TopicQueue, end: int) -> bool:
        """Return True once the messages below *end* are readable, which a member of a group may not have yet.

        False: they are not, and waiting does not help
        """
        ...

    def settle(self) -> None:
        """Wait, at most a few seconds, until everything that is committed now is visible."""
        ...

    def close(self) -> None:
        """Close files and connections."""
        ...


def gone(queue: TopicQueue, offset: int, min_offset: int) -> OffsetTooSmallError:
    """Return the error for a read below the queue's minimum offset."""
    place = f"queue {queue.queue_id} of {queue.topic}"
    return OffsetTooSmallError(
        f"{place} starts at offset {min_offset}: messages from {offset} were deleted", min_offset=min_offset
    )


def short(queue: TopicQueue, offset: int, max_offset: int) -> OffsetOutOfRangeError:
    """Return the error for a read above the queue's maximum offset."""
    place = f"queue {queue.queue_id} of {queue.topic}"
    return OffsetOutOfRangeError(
        f"{place} ends at offset {max_offset}: offset {offset} does not exist", max_offset=max_offset
    )
