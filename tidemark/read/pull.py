"""Pulling messages of one queue from a queue offset (docs/format.md §14).

By default a pull returns no message below the requested offset and at most max_messages, unwraps inner batches, and
compares tags message by message. `pull_as_broker` returns the messages that a broker's client would receive.
"""

from __future__ import annotations

import enum
import sys
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format import consume_queue
from tidemark.format.message import MessageArray
from tidemark.format.reading import ReadChoice, ReadLimits, choose, choose_units
from tidemark.read.cached import NotCachedError, is_cached_only
from tidemark.read.file_run import FileRun
from tidemark.read.queue_reader import QueueBounds, QueueReader, ones
from tidemark.read.records import (
    QUEUE_FILE_MISSING,
    QUEUE_GAP,
    Records,
    Skipped,
    StoredPieces,
    read_records,
    unchecked_records,
)
from tidemark.read.tag_filter import TagFilter
from tidemark.read.unit_run import UnitArray, part_of

_UNITS_AT_ONCE = 4096
_READ_AHEAD = 256  # units of the first read, from whose first unit the number of units to read is estimated
_MARGIN, _FEW = 8, 16  # sizes vary: read an eighth more units, plus a few


class PullStatus(enum.Enum):
    """Results of a pull: a subset of RocketMQ's GetMessageStatus."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"


class PullRequest(NamedTuple):
    """Parameters of a pull. max_bytes counts stored records; the first one is returned regardless of its size."""

    offset: int
    max_messages: int
    max_bytes: int
    tags: TagFilter | None = None
    whole_records: bool = False  # return whole records: never a part of an inner batch
    tags_by_hash: bool = False  # with whole_records: return all records whose units match, as a broker does
    unchecked: bool = False  # with whole_records and without tags: the reader checks the records
    max_scanned_units: int = 200_000  # limit of a filtered pull, which then returns NO_MATCHED_MESSAGE and next_offset
    most_in_place: int = sys.maxsize  # messages; a thread that must not wait raises NotCachedError for more


@dataclass(frozen=True)
class PulledPart:
    """Records that were read together, and their requested messages."""

    records: Records
    messages: MessageArray  # empty if whole records are requested without a filter, or by hash
    chosen: NDArray[np.bool_] | None  # the records with requested messages; None: all valid ones


@dataclass
class PullResult:
    """Result of one pull."""

    status: PullStatus
    next_offset: int
    bounds: QueueBounds
    parts: list[PulledPart] = field(default_factory=list)
    stored: StoredPieces = field(default_factory=list)  # records as stored, instead of parts
    skipped: list[Skipped] = field(default_factory=list)
    message_count: int = 0
    stored_bytes: int = 0  # size of the records that were read


def refuse(bounds: QueueBounds, offset: int) -> PullResult | None:
    """Return the result for an *offset* outside the bounds; None if there may be messages (docs/format.md §14)."""
    if bounds.max_offset == 0:
        return PullResult(PullStatus.NO_MESSAGE_IN_QUEUE, 0, bounds)
    if offset < bounds.min_offset:
        return PullResult(PullStatus.OFFSET_TOO_SMALL, bounds.min_offset, bounds)
    if offset == bounds.max_offset:
        return PullResult(PullStatus.OFFSET_OVERFLOW_ONE, offset, bounds)
    if offset > bounds.max_offset:
        return PullResult(PullStatus.OFFSET_OVERFLOW_BADLY, bounds.max_offset, bounds)
    return None


def pull(queue: QueueReader, log: FileRun, bounds: QueueBounds, request: PullRequest) -> PullResult:
    """Return messages of *queue* from request.offset, limited to the request.

    Raises UnitsGoneError if files have expired since *bounds* were determined.
    """
    refused = refuse(bounds, request.offset)
    if refused is not None:
        return refused
    return _PullRun(queue, log, bounds, request).run()


class Places(NamedTuple):
    """Places of records in the log: their physical offsets, ascending, and their sizes in bytes."""

    physical_offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]


class _PullRun:
    """One pull: reads runs of units until the request is satisfied or the queue ends."""

    def __init__(self, queue: QueueReader, log: FileRun, bounds: QueueBounds, request: PullRequest) -> None:
        self._queue = queue
        self._log = log
        self._request = request
        self._scanned = 0
        self._unit_end = 0  # end of the examined units of a batch queue, as queue offset
        self._is_full = False
        self._ahead: tuple[int, UnitArray] | None = None  # number of a unit, and units from there already read
        self._is_trimmed = False  # within an inner batch: next_offset follows from the last message
        self.result = PullResult(PullStatus.NO_MATCHED_MESSAGE, request.offset, bounds)

    def run(self) -> PullResult:
        units = self.result.bounds.units
        number = self._queue.locate(self._request.offset, units)
        while number < units.end and not self._is_full and self.result.message_count < self._request.max_messages:
            number = self._take(number, min(units.end - number, self._run_length(number)))
        if not self._is_full and number >= units.end:
            self.result.next_offset = max(self.result.bounds.units_end, self._request.offset)
        if self.result.message_count:
            self.result.status = PullStatus.FOUND
        if self.result.skipped:  # units after a trimmed page were examined as well
            self.result.skipped = [skip for skip in self.result.skipped if skip.queue_offset < self.result.next_offset]
        if number >= units.end and not self._is_full:
            self._report_lost_end()
        return self.result

    def _report_lost_end(self) -> None:
        """Report lost units at the queue's end. next_offset stays before them: the pipeline may restore them."""
        bounds = self.result.bounds
        if bounds.lost and not bounds.is_held:
            start = self.result.next_offset
            self.result.skipped.append(Skipped(-1, start, QUEUE_FILE_MISSING, bounds.max_offset - start))

    def _run_length(self, number: int) -> int:
        """Return how many units to read together: as many as are needed if all have the size of unit *number*."""
        left = self._request.max_messages - self.result.message_count
        if self._request.tags is not None:
            return max(_UNITS_AT_ONCE, left)
        if min(left, self.result.bounds.units.end - number) <= _FEW:  # reading one of them first would cost more
            return min(left, _FEW)
        ahead = min(left, self.result.bounds.units.end - number, _READ_AHEAD)
        units = self._queue.run.read_visible(number, ahead)
        self._ahead = number, units
        size = int(units["message_size"][0]) if len(units) else 0
        if not 0 < size < consume_queue.PRE_BLANK_SIZE:
            return min(left, _UNITS_AT_ONCE)
        fitting = (self._request.max_bytes - self.result.stored_bytes) // size
        return min(left, fitting + fitting // _MARGIN + _FEW)

    def _take(self, number: int, count: int) -> int:
        """Examine *count* units from *number* and return the number of the first unit not examined."""
        units = self._units(number, count)
        if not len(units):
            return self._step_over(number)
        if not self._queue.is_batch and self._request.tags is None:
            return self._take_simple(number, units)
        firsts, counts = self._places_of(number, units)
        repeated, gaps = self._breaks(firsts, counts)
        wanted = counts
        if self._queue.is_batch and not self._request.whole_records:
            wanted = np.clip(firsts + counts - self._request.offset, 0, counts)
        choice = self._choose(units, wanted, repeated)
        examined = choice.examined
        self._is_full |= choice.is_full
        if choice.numbers is not None:
            self._require_thread(choice.messages)
            self.result.stored_bytes += choice.size
            chosen = units[choice.numbers]
            places = Places(chosen["physical_offset"].astype(np.int64), chosen["message_size"].astype(np.int64))
            self._read(places, firsts[choice.numbers], counts[choice.numbers], choice.messages)
        self.result.skipped += [gap for at, gap in gaps if at < examined]
        if examined and self._queue.is_batch:
            self._unit_end = max(self._unit_end, int((firsts + counts)[:examined].max()))
        if examined and not self._is_trimmed:  # a damaged unit of a batch queue may have any offset
            end = int(firsts[examined - 1] + counts[examined - 1])
            self.result.next_offset = min(max(end, self.result.next_offset), self.result.bounds.max_offset)
        self._scanned += examined
        if self._request.tags is not None and self._scanned >= self._request.max_scanned_units:
            self._is_full = True
        return number + examined

    def _take_simple(self, number: int, units: UnitArray) -> int:
        """Do what `_take` does, by one loop: *units* are of a simple queue, and there is no tag."""
        request, result = self._request, self.result
        chosen = choose_units(
            units,
            number,
            most_messages=request.max_messages - result.message_count,
            most_bytes=request.max_bytes - result.stored_bytes,
            is_first=not result.message_count,
        )
        self._is_full |= chosen.is_full
        if count := len(chosen.numbers):
            self._require_thread(count)
            result.stored_bytes += chosen.size
            self._read(Places(chosen.physical_offsets, chosen.sizes), chosen.numbers, ones(count), count)
        end = number + chosen.examined
        if chosen.examined and not self._is_trimmed:
            result.next_offset = min(max(end, result.next_offset), result.bounds.max_offset)
        return end

    def _units(self, number: int, count: int) -> UnitArray:
        ahead, self._ahead = self._ahead, None
        units = None if ahead is None else part_of(ahead, number, count)
        return self._queue.run.read_visible(number, count) if units is None else units

    def _places_of(self, number: int, units: UnitArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first queue offset and the message count of each of *units*.

        In a batch queue an invalid unit counts as zero messages after the previous unit.
        """
        firsts, counts = self._queue.first_offsets(number, units), self._queue.message_counts(units)
        if self._queue.is_batch and not (live := self._queue.run.is_live(units)).all():
            ends = np.where(live, firsts + counts, 0)
            before = np.maximum.accumulate(np.concatenate(([self.result.next_offset], ends)))[:-1]
            firsts, counts = np.where(live, firsts, before), np.where(live, counts, 0)
        return firsts, counts

    def _require_thread(self, more: int) -> None:
        if self.result.message_count + more > self._request.most_in_place and is_cached_only():
            raise NotCachedError

    def _step_over(self, number: int) -> int:
        """Report the units of a missing queue file as skipped, and return the number of the next unit.

        Raises:
            UnitsGoneError: the file has expired.
        """
        bounds, start = self.result.bounds, self.result.next_offset
        following = min(self._queue.run.next_there(number), bounds.units.end)
        self.result.status = PullStatus.OFFSET_FOUND_NULL
        if following < bounds.units.end:
            self.result.next_offset = self._queue.offsets_of(following)[0]
        end = self.result.next_offset if following < bounds.units.end else bounds.max_offset
        self.result.skipped.append(Skipped(-1, start, QUEUE_FILE_MISSING, end - start))
        return following

    def _is_candidate(self, units: UnitArray) -> NDArray[np.bool_]:
        """Return the units to read: those whose code matches the tag, and invalid units."""
        wanted: NDArray[np.bool_] = units["message_size"] != consume_queue.PRE_BLANK_SIZE
        if self._queue.is_batch:  # an invalid unit leaves a gap, which is reported
            wanted = self._queue.run.is_live(units)
        elif self._request.tags is not None:
            wanted &= self._request.tags.matches_code(self._queue.tags_codes(units)) | ~self._queue.run.is_live(units)
        return wanted

    def _breaks(
        self, firsts: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_] | None, list[tuple[int, Skipped]]]:
        """Compare the units of a batch queue with each other: their queue offsets must be dense and ascending.

        Returns:
            mask of the units whose offsets earlier units already have, to be left out; None if there are none.
            (index of a unit, missing queue offsets before it) for each gap.
        """
        if not self._queue.is_batch:
            return None, []
        ends = np.maximum.accumulate(np.concatenate(([self._unit_end], firsts + counts)))[:-1]
        repeated = (counts > 0) & (firsts < ends) & (ends > self._request.offset)
        missing = np.flatnonzero((counts > 0) & (firsts > np.maximum(ends, self._request.offset)))
        starts = np.maximum(ends, self._request.offset)
        gaps = [
            (int(i), Skipped(-1, int(starts[i]), QUEUE_GAP, int(firsts[i] - starts[i])))
            for i in missing
            if firsts[i] < self.result.bounds.max_offset
        ]
        return (repeated if repeated.any() else None), gaps

    def _choose(self, units: UnitArray, wanted: NDArray[np.int64], left_out: NDArray[np.bool_] | None) -> ReadChoice:
        """Choose as many units as the remaining limits allow. wanted: number of requested messages per unit."""
        request, result = self._request, self.result
        limits = ReadLimits(
            request.max_messages - result.message_count,
            request.max_bytes - result.stored_bytes,
            is_first=not result.message_count,
            is_whole=request.whole_records,
            counts=request.tags is None or not self._queue.is_batch,
        )
        sizes = units["message_size"].astype(np.int64)
        candidates = self._is_candidate(units)
        return choose(sizes, wanted, candidates if left_out is None else candidates & ~left_out, limits)

    def _read(self, places: Places, firsts: NDArray[np.int64], counts: NDArray[np.int64], messages: int) -> None:
        """Read the records at *places*. messages: the number of wanted messages in all of them."""
        if self._request.unchecked and self._add_unchecked(places, messages):
            return
        as_stored = self._request.whole_records and (self._request.tags is None or self._request.tags_by_hash)
        records = read_records(
            self._log,
            *places,
            topic=self._queue.record_topic,
            queue_id=self._queue.queue_id,
            numbers=self._queue.numbers_to_check(firsts),
            with_fields=not as_stored,
        )
        self.result.skipped += records.skipped(firsts, counts)
        if as_stored:
            self._add_whole(records, counts, messages)
        else:
            self._add_messages(records, firsts)

    def _add_unchecked(self, places: Places, messages: int) -> bool:
        """Add the records at *places* without a check. Return False if some of them must be checked."""
        pieces = unchecked_records(self._log, *places)
        if pieces is None:
            return False
        self.result.message_count += messages
        self.result.stored += pieces
        return True

    def _add_whole(self, records: Records, counts: NDArray[np.int64], messages: int) -> None:
        self.result.message_count += messages if records.is_sound else int(counts[records.right].sum())
        if self._request.unchecked:
            self.result.stored.append(memoryview(records.stored_bytes()))
        else:
            self.result.parts.append(PulledPart(records, _NO_MESSAGES, None))

    def _add_messages(self, records: Records, firsts: NDArray[np.int64]) -> None:
        messages = records.messages()
        self._queue.number_messages(messages, firsts)
        if self._queue.is_batch:
            messages = _chosen(messages, messages["queue_offset"] >= self._request.offset)
        if self._request.tags is not None:
            messages = _chosen(messages, self._request.tags.matches_text(records.buffer, messages))
        left = self._request.max_messages - self.result.message_count
        if not self._request.whole_records and len(messages) >= left:
            if len(messages) > left or self._queue.is_batch:
                self.result.next_offset = int(messages["queue_offset"][left - 1]) + 1
                self._is_trimmed = True
            messages = messages[:left]
            self._is_full = True
        chosen = np.zeros(len(records.rows), np.bool_)
        chosen[messages["record"]] = True
        self.result.message_count += len(messages)
        if len(messages):
            self.result.parts.append(PulledPart(records, messages, chosen))


def _chosen(messages: MessageArray, choice: NDArray[np.bool_]) -> MessageArray:
    """Return the messages of *choice*, without a copy if they are adjacent."""
    first = int(choice.argmax()) if len(choice) else 0
    count = int(choice.sum())
    return messages[first : first + count] if choice[first : first + count].all() else messages[choice]


_NO_MESSAGES: MessageArray = np.empty(0, np.dtype([]))
