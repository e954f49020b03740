"""Log: what the source reads from, be it a store's files or the query service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import pyarrow as pa

from tidemark.client.received_message import TopicQueue
from tidemark.errors import OffsetOutOfRangeError, OffsetTooSmallError
from tidemark.read.lookup.key_places import QueuePlace

BATCH_BYTES = 4 << 20  # as stored, of one Arrow batch


class Bounds(NamedTuple):
    """What of a queue may be read: min_offset ≤ n < max_offset."""

    min_offset: int
    max_offset: int


class Page(NamedTuple):
    """Messages of one queue, in order. damage: what was left out, a line each."""

    messages: pa.RecordBatch  # tidemark.read.messages.message_columns.SCHEMA; at least the columns that were asked for
    next_offset: int
    damage: list[str]


class Log(Protocol):
    """One store, for reading. Errors are StoreErrors: TopicNotFoundError, QueueIllegalError, UnavailableError."""

    def topics(self) -> list[str]:
        """All topics' names."""
        ...

    def queue_ids(self, topic: str) -> list[int]:
        """Queues of *topic*."""
        ...

    def bounds(self, queue: TopicQueue) -> Bounds:
        """What may be read of it now."""
        ...

    def offset_at(self, queue: TopicQueue, timestamp_ms: int) -> int | None:
        """Offset of the first message stored at this time or later; None where there is none."""
        ...

    def end_within(self, queue: TopicQueue, start: int, end: int, max_bytes: int) -> int:
        """How far from *start*, at most to *end*, not more than max_bytes are stored. *start*: not even one message."""
        ...

    def pages(self, queue: TopicQueue, start: int, end: int, *, tags: frozenset[str] | None) -> Iterator[Page]:
        """Messages with start ≤ queue offset < end, all of them or those with one of *tags*.

        raises OffsetTooSmallError once they are gone; OffsetOutOfRangeError where the queue does not go so far
        """
        ...

    def places_of_key(self, topic: str, key: str, most: int) -> list[QueuePlace] | None:
        """Places of all visible messages of *topic* that carry *key*, and maybe of some others.

        None: they are more than *most*, or it is not known where all of them are
        """
        ...

    def settle(self) -> None:
        """Wait, for a few seconds, until what is committed now may be read."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


def gone(queue: TopicQueue, offset: int, min_offset: int) -> OffsetTooSmallError:
    """What is raised where messages below the queue's minimum are wanted."""
    place = f"queue {queue.queue_id} of {queue.topic}"
    return OffsetTooSmallError(
        f"{place} begins at {min_offset}: messages from {offset} on are gone", min_offset=min_offset
    )


def short(queue: TopicQueue, offset: int, max_offset: int) -> OffsetOutOfRangeError:
    """What is raised where messages above the queue's maximum are wanted."""
    place = f"queue {queue.queue_id} of {queue.topic}"
    return OffsetOutOfRangeError(f"{place} ends at {max_offset}: there is no offset {offset}", max_offset=max_offset)
