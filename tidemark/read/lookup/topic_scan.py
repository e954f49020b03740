"""Scan of a whole topic over all its queues, page by page, in the order of the log, hence of store times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidemark.format.message import OTHER_QUEUE_FAULT
from tidemark.read.lookup.offset_by_time import first_unit_at
from tidemark.read.pull import PulledPart
from tidemark.read.queue_reader import QueueReader
from tidemark.read.records import Records, Skipped, read_records
from tidemark.read.store_reader import StoreReader
from tidemark.read.watermark import Watermark

_FOR_EVER_MS = (1 << 63) - 1
_RECORDS_AT_ONCE = 1024
_LAST_ELEMENT = 1 << 30  # element of a MessagePlace whose record was returned completely


@dataclass(frozen=True)
class MessagePlace:
    """Place of a message: its record and its index in an inner batch."""

    physical_offset: int = -1
    element: int = 0


@dataclass(frozen=True)
class TopicQuery:
    """Parameters of a scan. Times are store times, both inclusive. after: last message of the previous page."""

    topic: str
    from_ms: int = 0
    to_ms: int = _FOR_EVER_MS
    limit: int = 32
    max_bytes: int = 4 << 20  # stored bytes of records; the first one is returned regardless of its size
    after: MessagePlace | None = None


@dataclass
class TopicAnswer:
    """One page. after: start of the next page; None if no visible message follows."""

    parts: list[PulledPart]
    skipped: list[Skipped]
    after: MessagePlace | None


def scan_topic(store: StoreReader, watermark: Watermark, query: TopicQuery) -> TopicAnswer:
    """Return visible messages of a topic within the requested times."""
    answer = TopicAnswer([], [], None)
    queues = store.queues(query.topic)
    offsets, sizes, firsts, queue_ids, complete = _next_units(store, queues, watermark, query)
    if not len(offsets):
        return answer
    fits = np.cumsum(sizes) <= query.max_bytes
    n = max(int(fits.sum()), 1)
    complete = complete and n == len(offsets)
    numbers = queues[0].numbers_to_check(firsts[:n])
    records = read_records(store.log, offsets[:n], sizes[:n], numbers=numbers)
    records = _without_others(records, queues[0].record_topic, queue_ids[:n])
    answer.skipped = records.skipped(firsts[:n])
    messages = records.messages()
    elements = _element_numbers(messages["record"])
    times = messages["store_timestamp"]
    keep = (times >= query.from_ms) & (times <= query.to_ms)
    if query.after is not None:
        same = messages["physical_offset"] == query.after.physical_offset
        keep &= ~same | (elements > query.after.element)
    ends_here = bool((times > query.to_ms).any())
    kept = np.flatnonzero(keep)
    trimmed = len(kept) > query.limit
    kept = kept[: query.limit]
    if len(kept):
        answer.parts.append(PulledPart(records, messages[kept], records.right))
    if trimmed:
        answer.after = MessagePlace(int(messages["physical_offset"][kept[-1]]), int(elements[kept[-1]]))
    elif not complete and not ends_here:
        answer.after = MessagePlace(int(offsets[n - 1]), _LAST_ELEMENT)
    return answer


def _without_others(records: Records, topic: bytes, queue_ids: NDArray[np.int64]) -> Records:
    """Return the records with a fault for those of another topic or queue than the unit's.

    There are none if *topic* is b"", for a light queue.
    """
    if not topic:
        return records
    rows = records.rows
    right = np.flatnonzero(records.right)
    same = (rows["queue_id"][right] == queue_ids[right]) & (rows["topic_length"][right] == len(topic))
    candidates = np.flatnonzero(same)
    at = rows["topic_at"][right[candidates]][:, np.newaxis] + np.arange(len(topic))
    same[candidates] = (records.buffer[at] == np.frombuffer(topic, np.uint8)).all(axis=1)
    rows["fault"][right[~same]] = OTHER_QUEUE_FAULT
    return records._replace(is_sound=bool(same.all()) and records.is_sound)


def _element_numbers(records: NDArray[np.int32]) -> NDArray[np.int64]:
    """Number the messages 0, 1, 2, … within each record."""
    at = np.arange(len(records))
    starts = np.flatnonzero(np.concatenate(([True], records[1:] != records[:-1]))) if len(records) else at
    return at - np.repeat(starts, np.diff(np.concatenate((starts, [len(records)]))))


def _next_units(
    store: StoreReader, queues: list[QueueReader], watermark: Watermark, query: TopicQuery
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], bool]:
    """Return physical offset, size, first queue offset and queue id of the next records, and whether these are all."""
    count = min(query.limit + 1, _RECORDS_AT_ONCE)
    columns: list[NDArray[np.int64]] = []
    complete = True
    horizon = watermark.physical_offset  # below it the units of every queue were read
    for queue in queues:
        first, end = _range(store, queue, watermark, query)
        units = queue.run.read(first, min(count, end - first)) if first < end else queue.run.read(0, 0)
        if first < end and not len(units):  # a file of the queue is missing or has expired
            first = min(queue.run.next_there(first), end)
            units = queue.run.read(first, min(count, end - first))
        offsets = units["physical_offset"].astype(np.int64)
        sizes = units["message_size"].astype(np.int64)
        live = queue.run.is_live(units)
        if first + len(units) < end:
            complete = False
            horizon = min(horizon, int(offsets[live].max(initial=-1)) + 1)
        ids = np.full(len(units), queue.queue_id, np.int64)
        columns.append(np.stack((offsets, sizes, queue.first_offsets(first, units), ids))[:, live])
    merged = np.concatenate(columns, axis=1) if columns else np.empty((4, 0), np.int64)
    merged = merged[:, np.argsort(merged[0], kind="stable")]
    within = merged[:, merged[0] < horizon]
    complete = complete and within.shape[1] <= count
    within = within[:, :count]
    return within[0], within[1], within[2], within[3], complete


def _range(store: StoreReader, queue: QueueReader, watermark: Watermark, query: TopicQuery) -> tuple[int, int]:
    """Return the range of the queue's units for this page."""
    first, end = store.bounds(queue, watermark).units
    if query.after is not None:
        whole = query.after.element >= _LAST_ELEMENT
        return queue.run.first_at_or_above(query.after.physical_offset + whole, first, end), end
    if query.from_ms > 0:
        return first_unit_at(queue, store.log, first, end, query.from_ms), end
    return first, end
