"""Lookup of single messages of a topic by queue and queue offset, many at once: near offsets share one read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from tidemark.errors import (
    CorruptMessageError,
    MessageNotFoundError,
    MessageNotYetVisibleError,
    OffsetOutOfRangeError,
    OffsetTooSmallError,
    QueueIllegalError,
    StoreError,
)
from tidemark.read.pull import PulledPart, PullRequest, pull
from tidemark.read.queue_reader import QueueReader
from tidemark.read.records import QUEUE_FILE_MISSING, QUEUE_GAP, REMOVED, Skipped
from tidemark.read.store_reader import StoreReader
from tidemark.read.watermark import Watermark

_GAP = 8  # offsets: reading over fewer other messages costs less than another read
_READ_BYTES = 4 << 20  # stored bytes of one read; the first record is read regardless of its size

Place = tuple[int, int]
"""Queue id and queue offset of a message."""


class Missing(NamedTuple):
    """The reason why there is no message at *place*. skipped: the damaged or lost record there, if there is one."""

    place: Place
    error: type[StoreError]
    skipped: Skipped | None = None


class FoundPart(NamedTuple):
    """Messages of one queue, all of which were asked for."""

    queue_id: int
    part: PulledPart


def find_places(
    store: StoreReader, watermark: Watermark, topic: str, places: Iterable[Place]
) -> Iterator[FoundPart | Missing]:
    """Yield the messages at *places*, queue by queue, and the places without one.

    Raises TopicNotFoundError, and UnitsGoneError if files have expired meanwhile.
    """
    store.topic(topic)
    for queue_id, group in groupby(sorted(set(places)), key=itemgetter(0)):
        offsets = [offset for _, offset in group]
        try:
            queue = store.queue(topic, queue_id)
        except QueueIllegalError:
            yield from (Missing((queue_id, offset), QueueIllegalError) for offset in offsets)
        else:
            yield from _find_in_queue(store, watermark, queue, offsets)


def _find_in_queue(
    store: StoreReader, watermark: Watermark, queue: QueueReader, offsets: list[int]
) -> Iterator[FoundPart | Missing]:
    bounds = store.bounds(queue, watermark)
    above = MessageNotYetVisibleError if watermark.is_behind else OffsetOutOfRangeError
    first, end = bisect_left(offsets, bounds.min_offset), bisect_left(offsets, bounds.max_offset)
    yield from (Missing((queue.queue_id, offset), OffsetTooSmallError) for offset in offsets[:first])
    yield from (Missing((queue.queue_id, offset), above) for offset in offsets[end:])
    while first < end:
        last = _last_near(offsets, first, end)
        most = offsets[last - 1] - offsets[first] + 1
        result = pull(queue, store.log, bounds, PullRequest(offsets[first], most, _READ_BYTES))
        read_end = last if result.next_offset > offsets[last - 1] else bisect_left(offsets, result.next_offset)
        read_end = max(read_end, first + 1)  # a pull that finds nothing may stay where it is
        wanted = set(offsets[first:read_end])
        for part in result.parts:
            found = part.messages["queue_offset"].tolist()
            chosen = [i for i, offset in enumerate(found) if offset in wanted]
            if chosen:
                yield FoundPart(queue.queue_id, PulledPart(part.records, part.messages[chosen], part.chosen))
            wanted.difference_update(found)
        yield from (_missing(queue, offset, result.skipped) for offset in sorted(wanted))
        first = read_end


def _last_near(offsets: list[int], first: int, end: int) -> int:
    """Return the end of the run of near offsets that begins at index *first*."""
    last = first + 1
    while last < end and offsets[last] - offsets[last - 1] <= _GAP:
        last += 1
    return last


def _missing(queue: QueueReader, offset: int, skipped: list[Skipped]) -> Missing:
    place = (queue.queue_id, offset)
    for skip in skipped:
        if skip.queue_offset <= offset < skip.queue_offset + skip.message_count:
            return Missing(place, _ERRORS.get(skip.reason, CorruptMessageError), skip)
    return Missing(place, MessageNotFoundError)


_ERRORS: Mapping[str, type[StoreError]] = {
    REMOVED: OffsetTooSmallError,
    QUEUE_FILE_MISSING: MessageNotFoundError,
    QUEUE_GAP: MessageNotFoundError,
}
