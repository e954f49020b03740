"""QueueRange: what is read of a queue; and queues cut into as many of them as are wanted."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from tidemark.client.received_message import TopicQueue

_NEAR = 64  # messages between two places: reading over them is cheaper than another look


@dataclass(frozen=True)
class QueueRange:
    """Messages of a queue with start ≤ queue offset < end; of them, where *places* are told, only those near them."""

    topic: str
    queue_id: int
    start: int
    end: int
    places: tuple[int, ...] | None = None  # queue offsets, ascending

    @property
    def queue(self) -> TopicQueue:
        """Which queue."""
        return TopicQueue(self.topic, self.queue_id)

    @property
    def count(self) -> int:
        """Offsets in it."""
        return self.end - self.start

    @property
    def wanted(self) -> int:
        """Messages that are wanted of it."""
        return self.count if self.places is None else len(self.places)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """What is read: from which offset to which, exclusive."""
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
    """*ranges* without empty ones, cut into at least *least*, of about equal lengths, where there is so much.

    Those with places stay whole: there is little to read.
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
    """Into *parts* of lengths that differ by one at most; fewer where there are fewer messages."""
    parts = min(parts, whole.count)
    cuts = [whole.start + whole.count * part // parts for part in range(parts + 1)]
    return [QueueRange(whole.topic, whole.queue_id, *pair) for pair in itertools.pairwise(cuts)]
