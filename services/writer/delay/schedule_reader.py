"""DelayQueues: reads the queues of SCHEDULE_TOPIC_XXXX: the messages that are due, and when the next one is due.

A unit's tags code is its delivery time (docs/format.md §2). As for any reader, only indexed messages are visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import QueueIllegalError, TopicNotFoundError
from tidemark.format import consume_queue, message
from tidemark.format.record import Record, decode_record, encode_record
from tidemark.format.tags import DELAY_LEVELS_MS, EXT_ADDRESS_LIMIT, SCHEDULE_TOPIC
from tidemark.read.queue_reader import QueueReader
from tidemark.read.records import Records, read_records
from tidemark.read.store_reader import StoreReader
from tidemark.read.unit_run import UnitArray
from tidemark.store.paths import StorePaths

_MAX_UNITS = 256
_MAX_BYTES = 1 << 20  # of the records of one look; the first record is read even if it is larger


class DueMessage(NamedTuple):
    """A message that is due. record: None if it cannot be read; fault is the reason."""

    queue_offset: int
    physical_offset: int
    record: Record | None
    fault: str = ""


class Look(NamedTuple):
    """The result of one check of a level."""

    watermark: int  # everything below is indexed
    min_offset: int
    max_offset: int
    messages: Sequence[DueMessage] = ()
    next_offset: int = 0  # queue offset after them, or the start of the check
    next_due_ms: int | None = None  # when the message at next_offset is due; None: none is visible


class DelayQueues:
    """A reader of one store, for one thread at a time. Raises CorruptStoreError if marks or files cannot be read."""

    def __init__(self, paths: StorePaths) -> None:
        warm_up()
        self._reader = StoreReader(paths.root, log_folders=paths.other_log_folders)

    def watermark(self) -> int:
        """Return the physical offset below which the log is indexed."""
        return self._reader.watermark().physical_offset

    def look(self, level: int, queue_offset: int, now_ms: int) -> Look:
        """Return the messages of *level*, from *queue_offset*, that are due at *now_ms*; only the first ones of many.

        Raises StoreError if queues, log or marks cannot be read, OffsetTooSmallError if the messages expire meanwhile.
        """
        reader = self._reader
        watermark = reader.watermark()
        try:
            queue = reader.queue(SCHEDULE_TOPIC, level - 1)
        except (TopicNotFoundError, QueueIllegalError):
            return Look(watermark.physical_offset, 0, 0, next_offset=queue_offset)
        bounds = reader.bounds(queue, watermark)
        found = Look(watermark.physical_offset, bounds.min_offset, bounds.max_offset, next_offset=queue_offset)
        first = max(queue_offset, bounds.min_offset)
        if first >= bounds.max_offset:
            return found
        units = queue.run.read(first, min(bounds.max_offset - first, _MAX_UNITS))
        if not len(units):  # a file in the row is missing
            first = queue.run.next_there(first)
            units = queue.run.read(first, min(bounds.max_offset - first, _MAX_UNITS))
        times = self._times(queue, units)
        count = _due(units, times, level=level, now_ms=now_ms)
        messages = self._read(queue, units[:count], first)
        reader.close_deleted()
        next_offset = first + count
        next_due_ms = int(times[count]) if count < len(units) else now_ms if next_offset < bounds.max_offset else None
        return found._replace(messages=messages, next_offset=next_offset, next_due_ms=next_due_ms)

    def _times(self, queue: QueueReader, units: UnitArray) -> NDArray[np.int64]:
        """Return when each unit's message is due, recomputed from the record if the queue's extension lost the time."""
        times = queue.tags_codes(units)
        for i in np.flatnonzero(times <= EXT_ADDRESS_LIMIT):
            rows = self._records(queue, units[i : i + 1]).rows
            times[i] = int(rows["tags_code"][0]) if rows["fault"][0] == 0 else 0
        return times

    def _records(self, queue: QueueReader, units: UnitArray) -> Records:
        return read_records(
            self._reader.log,
            units["physical_offset"].astype(np.int64),
            units["message_size"].astype(np.int64),
            topic=queue.record_topic,
            queue_id=queue.queue_id,
        )

    def _read(self, queue: QueueReader, units: UnitArray, first: int) -> list[DueMessage]:
        there = np.flatnonzero(units["message_size"] != consume_queue.PRE_BLANK_SIZE)
        if not len(there):
            return []
        records = self._records(queue, units[there])
        offsets = there.astype(np.int64) + first
        faults = {skipped.queue_offset: skipped.reason for skipped in records.skipped(offsets)}
        messages = []
        for i, queue_offset in enumerate(offsets.tolist()):
            physical_offset = int(units["physical_offset"][there[i]])
            fault = faults.get(queue_offset, "")
            record = None if fault else decode_record(records.buffer[int(records.places[i]) :].data)
            messages.append(DueMessage(queue_offset, physical_offset, record, fault))
        return messages


def _due(units: UnitArray, times: NDArray[np.int64], *, level: int, now_ms: int) -> int:
    """Return how many of *units*, from the first, are to be read now.

    A time further ahead than the level's delay was computed before the clock was set back, so it counts as due.
    """
    waits = (times > now_ms) & (times <= now_ms + DELAY_LEVELS_MS[level - 1])
    waits &= units["message_size"] != consume_queue.PRE_BLANK_SIZE
    due = int(waits.argmax()) if waits.any() else len(units)
    sizes = np.where(units["message_size"] == consume_queue.PRE_BLANK_SIZE, 0, units["message_size"]).astype(np.int64)
    fitting = int(np.searchsorted(np.cumsum(sizes[:due]), _MAX_BYTES, "right"))
    return min(due, max(fitting, 1))


def warm_up() -> None:
    """Load the compiled loops before the first message is due."""
    raw = encode_record(Record(topic=b"t", body=b"b"))
    buffer = np.frombuffer(raw + raw, np.uint8).copy()
    place, size = np.zeros(1, np.int64), np.full(1, len(raw), np.int64)
    message.check_records(buffer, places=place, physical_offsets=place, sizes=size, topic=b"t", queue_id=0)
    message.copy_records(buffer, 0, place, size, buffer.copy(), 0)
