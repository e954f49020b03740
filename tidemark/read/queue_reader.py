"""QueueReader: one queue for reading; maps queue offsets to units, for both kinds of queues.

In a ConsumeQueue unit n is queue offset n. In a BatchConsumeQueue a unit holds the messages
[base_offset, base_offset + batch_size), and its number has no meaning.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.message import MessageArray
from tidemark.format.topic_name import LIGHT_QUEUE_PREFIX
from tidemark.read.ext_reader import ExtReader
from tidemark.read.file_run import FileRun, StrPath
from tidemark.read.records import ABSENT_FAULTS, REMOVED_FAULT, Numbers, read_records
from tidemark.read.unit_run import UnitArray, UnitRun, VisibleUnits
from tidemark.read.watermark import Watermark
from tidemark.store.originals.tombstones import Tombstone

_ONES = np.ones(4096, np.int64)  # not to be changed; a read-only array would have its own version of each compiled loop


class QueueBounds(NamedTuple):
    """Readable part of a queue: queue offsets min_offset ≤ n < max_offset, and the units that hold them.

    lost      number of offsets before max_offset whose units this reader has seen but which no longer exist
    is_held   True while the pipeline rebuilds these units
    """

    min_offset: int
    max_offset: int
    units: VisibleUnits
    lost: int = 0
    is_held: bool = False

    @property
    def units_end(self) -> int:
        """Queue offset after the last existing unit."""
        return self.max_offset - self.lost


class QueueReader:
    """Reader of one queue.

    ext           folder of its extension
    log           the store's log, used to check the units after a damaged one
    attached_log  log of an attached store, whose queues can end with stale units
    """

    def __init__(
        self,
        folder: StrPath,
        *,
        topic: str,
        queue_id: int,
        batch: bool,
        ext: StrPath | None = None,
        log: FileRun | None = None,
        attached_log: FileRun | None = None,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.is_batch = batch
        self._ext = ExtReader(ext) if ext is not None else None
        # topic that its records must have: b"" for any
        self.record_topic = b"" if topic.startswith(LIGHT_QUEUE_PREFIX) else topic.encode()
        self._attached_log = attached_log
        self._last: tuple[Watermark, int, Tombstone | None, QueueBounds] | None = None  # the last answer of `bounds`
        self._greatest = (0, 0, 0, 0)  # cuts, watermark and the queue's bounds when its end was greatest
        self._log = attached_log or log
        self.run = UnitRun(
            folder,
            batch=batch,
            is_stale=None if attached_log is None else self._is_stale,
            is_true=None if self._log is None else self._is_true,
        )

    def _is_true(self, number: int, unit: UnitArray) -> bool:
        """Return True if the unit points at a valid record with this queue and queue offset."""
        return self._fault_of(number, unit) == 0

    def _is_stale(self, number: int, unit: UnitArray) -> bool:
        """Return True if the log has something else where the unit points."""
        assert self._attached_log is not None
        fault = self._fault_of(number, unit)
        if fault == REMOVED_FAULT:  # expired, or beyond the log's end
            return int(unit["physical_offset"][0]) >= self._attached_log.known.end
        return fault in ABSENT_FAULTS

    def _fault_of(self, number: int, unit: UnitArray) -> int:
        assert self._log is not None
        records = read_records(
            self._log,
            unit["physical_offset"].astype(np.int64),
            unit["message_size"].astype(np.int64),
            topic=self.record_topic,
            queue_id=self.queue_id,
            numbers=self.numbers_to_check(self.first_offsets(number, unit)),
            with_fields=False,
        )
        return int(records.rows["fault"][0])

    def numbers_to_check(self, queue_offsets: NDArray[np.int64]) -> Numbers | None:
        """Return the queue offsets that records must have; None in a light queue, whose records belong to other queues.

        In an attached store offset 0 at another place is not accepted: such a record was not removed by the broker.
        """
        return Numbers(queue_offsets, may_restart=self._attached_log is None) if self.record_topic else None

    def bounds(self, watermark: Watermark, *, log_min: int, tombstone: Tombstone | None = None) -> QueueBounds:
        """Return the readable part of the queue below *watermark*; 0 and 0 for a queue that never had a message.

        Args:
            log_min: physical offset of the log's first record.
            tombstone: of the topic, if it was deleted. Records below the tombstone are hidden, and a queue without
                later records is empty at the tombstone's next offset.

        Raises:
            UnitsGoneError: a file has expired meanwhile.
        """
        last = self._last
        is_same = last is not None and last[0] is watermark and last[1] == log_min and last[2] is tombstone
        if last is not None and is_same and self.run.has_seen(watermark):
            return last[3]  # many requests may wait for messages of this queue: one of them looks at each watermark
        bounds = self._held(self._bounds(watermark, log_min, tombstone), watermark)
        self._last = watermark, log_min, tombstone, bounds
        return bounds

    def _held(self, bounds: QueueBounds, watermark: Watermark) -> QueueBounds:
        """Keep the greatest end seen by this reader, unless the writer has truncated the log since."""
        if self._attached_log is not None:
            return bounds
        cuts, offset, first, end = self._greatest
        if watermark.cuts != cuts or bounds.max_offset >= end:
            self._greatest = watermark.cuts, watermark.physical_offset, bounds.min_offset, bounds.max_offset
            return bounds
        if watermark.physical_offset < offset:  # an older watermark
            return bounds
        self.run.forget()  # the units may be rebuilt while the watermark stays the same
        first = max(bounds.min_offset, first)
        lost = end - max(bounds.max_offset, first)
        return QueueBounds(first, end, bounds.units, lost, watermark.is_held)

    def _bounds(self, watermark: Watermark, log_min: int, tombstone: Tombstone | None) -> QueueBounds:
        if tombstone is not None:
            log_min = max(log_min, tombstone.physical_offset)
        units = self.run.visible(watermark, log_min=log_min)
        if units.first == units.end:
            end = max(self._end_offset(units), 0 if tombstone is None else tombstone.next_offset(self.queue_id))
            return QueueBounds(end, end, units)
        if not self.is_batch:
            return QueueBounds(units.first, units.end, units)
        return QueueBounds(int(self.run.unit(units.first)["base_offset"]), self._end_offset(units), units)

    def _end_offset(self, units: VisibleUnits) -> int:
        """Return the queue offset after the last message of *units*; 0 without units."""
        if not self.is_batch or units.end == 0:
            return units.end
        last = self.run.unit(units.end - 1)
        return int(last["base_offset"]) + int(last["batch_size"])

    def locate(self, queue_offset: int, units: VisibleUnits) -> int:
        """Return the number of the unit that holds *queue_offset*, or of the first one after it if there is a gap."""
        if not self.is_batch:
            return queue_offset
        low, high = units
        while low < high:  # the first unit that ends above queue_offset
            middle = (low + high) // 2
            number, found = self._live_at_or_after(middle, high)
            if found is None or int(found["base_offset"][0]) + int(found["batch_size"][0]) > queue_offset:
                high = middle
            else:
                low = number + 1
        return min(self._live_at_or_after(low, units.end)[0], units.end)

    def _live_at_or_after(self, number: int, end: int) -> tuple[int, UnitArray | None]:
        """Return like `UnitRun.at_or_after`, but also skip invalid units, which have no usable offset."""
        number, found = self.run.at_or_after(number, end)
        while found is not None and not self.run.is_live(found)[0]:
            number, found = self.run.at_or_after(number + 1, end)
        return number, found

    def first_offsets(self, number: int, units: UnitArray) -> NDArray[np.int64]:
        """Return the queue offset of the first message of each of *units*, which begin at *number*."""
        if self.is_batch:
            return units["base_offset"].astype(np.int64)
        return np.arange(number, number + len(units), dtype=np.int64)

    def number_messages(self, messages: MessageArray, firsts: NDArray[np.int64]) -> None:
        """Replace queue offsets of a light queue's messages by its own. firsts: queue offset of each record read."""
        if not self.record_topic:
            messages["queue_offset"] = firsts[messages["record"]]

    def offsets_of(self, number: int) -> range:
        """Return the queue offsets of unit *number*. Raises UnitsGoneError if it no longer exists."""
        if not self.is_batch:
            return range(number, number + 1)
        unit = self.run.unit(number)
        base = int(unit["base_offset"])
        return range(base, base + int(unit["batch_size"]))

    def tags_codes(self, units: UnitArray) -> NDArray[np.int64]:
        """Return the tags code of each of *units*; an address if the extension has no unit for it."""
        codes = units["tags_code"].astype(np.int64)
        return codes if self._ext is None else self._ext.resolve(codes)

    def message_counts(self, units: UnitArray) -> NDArray[np.int64]:
        """Return the number of messages of each of *units*."""
        return units["batch_size"].astype(np.int64) if self.is_batch else ones(len(units))


def ones(count: int) -> NDArray[np.int64]:
    """Return *count* ones, which must not be changed: the message counts of a simple queue's units."""
    return _ONES[:count] if count <= len(_ONES) else np.ones(count, np.int64)
