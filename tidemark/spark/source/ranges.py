"""QueueRange: a range of a queue to read, and the division of ranges."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tidemark.client.received_message import StoreQueue, TopicQueue, queue_of_store

_NEAR = 64  # read over gaps of fewer messages, because another read costs more


@dataclass(frozen=True)
class QueueRange:
    """Messages of a queue with start ≤ queue offset < end; if *places* are set, only those near them are read.

    store  as in `StoreQueue`; empty if the query reads one store
    """

    topic: str
    queue_id: int
    start: int
    end: int
    places: tuple[int, ...] | None = None  # queue offsets, ascending
    store: str = ""

    @classmethod
    def of(cls, queue: TopicQueue, start: int, end: int) -> QueueRange:
        """Return a range of *queue*."""
        return cls(*queue, start, end, store=queue.store if isinstance(queue, StoreQueue) else "")

    @property
    def queue(self) -> TopicQueue:
        """The queue of the range."""
        return queue_of_store((self.topic, self.queue_id), self.store)

    @property
    def count(self) -> int:
        """Number of offsets in the range."""
        return self.end - self.start

    @property
    def wanted(self) -> int:
        """Number of messages to read."""
        return self.count if self.places is None else len(self.places)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Pairs of first and last offset to read, the last exclusive."""
        if self.places is None:
            return [(self.start, self.end)]
        found: list[tuple[int, int]] = []
        for place in self.places:
            if found and place - found[-1][1] < _NEAR:
                found[-1] = found[-1][0], place + 1
            else:
                found.append((place, place + 1))
        return found


def split(ranges: Iterable[QueueRange], least: int | None) -> list[QueueRange]:
    """Return *ranges* without empty ones, divided into at least *least* parts of about equal length, if possible.

    Ranges with places are not divided, because there is little to read.
    """
    given = [one for one in ranges if one.count > 0]
    told = [one for one in given if one.places is not None]
    return told + _split([one for one in given if one.places is None], least)


def _split(filled: list[QueueRange], least: int | None) -> list[QueueRange]:
    total = sum(one.count for one in filled)
    if least is None or len(filled) >= least or not total:
        return filled
    return [part for one in filled for part in _cut(one, max(1, -(-one.count * least // total)))]


def _cut(whole: QueueRange, parts: int) -> list[QueueRange]:
    """Divide into *parts* whose lengths differ by at most one; fewer if there are fewer messages."""
    parts = min(parts, whole.count)
    cuts = [whole.start + whole.count * part // parts for part in range(parts + 1)]
    return [replace(whole, start=start, end=end) for start, end in itertools.pairwise(cuts)]
