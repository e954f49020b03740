"""Reading of CommitLog records that units point at: few large reads, and a check of every record."""

from __future__ import annotations

import functools
import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format import message
from tidemark.format.dispatch_request import Fault, RequestArray, U8Array
from tidemark.format.message import MessageArray
from tidemark.format.reading import ReadPlan, ReadRun, plan_reads
from tidemark.format.record import MIN_RECORD_SIZE
from tidemark.read.buffers import POOL
from tidemark.read.file_run import FileRange, FileRun

GAP_BYTES = 16_384  # read over smaller gaps, because another read costs more
REMOVED = "REMOVED"  # besides faults: retention has deleted the log file
QUEUE_FILE_MISSING = "QUEUE_FILE_MISSING"
QUEUE_GAP = "QUEUE_GAP"  # no unit of a batch queue holds these offsets
OTHER_NUMBER = "QUEUE_OFFSET"  # the record's queue offset is not the one of its unit

_SCRATCH_BYTES = 512 << 10  # fits into a core's cache
_WORTH_A_RANGE = 32 << 10  # bytes: a system call for each smaller range costs more than a copy
_SIZE_FIELD = 4
_thread = threading.local()

IntArray = NDArray[np.int64]
_FIRST = np.zeros(1, np.int64)  # not to be changed
StoredPieces = list[FileRange | memoryview]


class Skipped(NamedTuple):
    """A record that is not returned, or lost units.

    reason         a Fault's name, OTHER_QUEUE, QUEUE_OFFSET, REMOVED, QUEUE_FILE_MISSING, or QUEUE_GAP
    message_count  number of queue offsets skipped, starting at queue_offset
    """

    physical_offset: int  # -1 if the unit is lost
    queue_offset: int
    reason: str
    message_count: int = 1


class Numbers(NamedTuple):
    """Expected queue offsets of records. may_restart: 0 is accepted anywhere, as a broker writes it (format.md §4)."""

    queue_offsets: IntArray
    may_restart: bool


class Records(NamedTuple):
    """Checked records, stored consecutively in one buffer in the requested order."""

    buffer: U8Array
    places: IntArray  # start of each in the buffer
    rows: RequestArray  # DISPATCH_REQUEST; `fault` is 0 for valid records
    is_sound: bool = False  # True if they are known to be valid, all of them
    known: MessageArray | None = None  # their messages, if the check has made them

    @property
    def right(self) -> NDArray[np.bool_]:
        """Mask of the valid records."""
        right: NDArray[np.bool_] = self.rows["fault"] == 0
        return right

    def skipped(self, queue_offsets: IntArray, counts: IntArray | None = None) -> list[Skipped]:
        """Return the invalid records. counts: number of messages of each; default: one."""
        if self.is_sound or not self.rows["fault"].any():
            return []
        return [
            Skipped(
                int(self.rows["physical_offset"][i]),
                int(queue_offsets[i]),
                _reason(int(self.rows["fault"][i])),
                1 if counts is None else int(counts[i]),
            )
            for i in np.flatnonzero(~self.right)
        ]

    def messages(self) -> MessageArray:
        """Return MESSAGE rows of the valid records, with inner batches unwrapped."""
        if self.known is not None:
            return self.known
        return message.unwrap_records(self.buffer, self.places, self.rows, POOL.lend)

    def stored_bytes(self, chosen: NDArray[np.bool_] | None = None) -> bytes | memoryview:
        """Return the valid records as stored, consecutively; only the *chosen* ones if given."""
        if self.is_sound and chosen is None:
            return self.buffer.data
        keep = self.right if chosen is None else self.right & chosen
        if keep.all():
            return self.buffer.data
        sizes = self.rows["message_size"][keep].astype(np.int64)
        return message.gather(self.buffer, self.places[keep], sizes, POOL.lend)[1].data


REMOVED_FAULT, _OTHER_NUMBER_FAULT = -1, -2
_OWN_REASONS = {REMOVED_FAULT: REMOVED, _OTHER_NUMBER_FAULT: OTHER_NUMBER}
ABSENT_FAULTS = frozenset(  # the place has no such record; a record with a damaged body counts as present
    {int(Fault.MAGIC), int(Fault.LENGTH), int(Fault.POSITION), message.OTHER_QUEUE_FAULT, _OTHER_NUMBER_FAULT}
)


def _reason(fault: int) -> str:
    return _OWN_REASONS.get(fault) or message.fault_reason(fault)


def read_records(
    log: FileRun,
    physical_offsets: IntArray,
    sizes: IntArray,
    *,
    topic: bytes = b"",
    queue_id: int = 0,
    numbers: Numbers | None = None,
    with_fields: bool = True,
) -> Records:
    """Read and check the records that begin at *physical_offsets* (ascending) and have *sizes*.

    topic, queue_id  the queue to which they must belong; b"" for any
    numbers          queue offsets that they must have; None for any
    with_fields      False: only the stored records are needed, not their messages

    Invalid or missing records raise no error: their rows carry a fault. Invalid records are read a second time, because
    the read may have failed and readers skip them permanently.
    """
    physical_offsets, sizes = np.ascontiguousarray(physical_offsets), np.ascontiguousarray(sizes)
    plan = plan_reads(
        physical_offsets, sizes, file_size=log.known.file_size, gap=GAP_BYTES, most_together=_SCRATCH_BYTES
    )
    if plan is None:
        readable = _is_possible(physical_offsets, sizes, log.known.file_size)
        return _read_around(log, physical_offsets, sizes, readable, topic, queue_id, numbers)
    read = functools.partial(
        _read_once, log, plan, physical_offsets, sizes, topic, queue_id, numbers, with_fields=with_fields
    )
    records = read()
    if records.is_sound or (records.rows["fault"] == REMOVED_FAULT).any():
        return records
    return read()


def read_small_record(log: FileRun, physical_offset: int, *, below: int) -> Records | None:
    """Read and check the record of any queue at *physical_offset* if it is small and in memory.

    below: physical offset at which it must end at the latest

    None for other records, and for invalid ones: `read_records` gives the reason.
    """
    place = log.range(physical_offset, MIN_RECORD_SIZE)
    if place is None:
        return None
    found = message.read_small_record(place.file.descriptor, place.offset, physical_offset, below=below)
    return None if found is None else Records(found.buffer, _FIRST, found.rows, is_sound=True, known=found.messages)


def read_record(log: FileRun, physical_offset: int, *, below: int) -> Records | None:
    """Read and check the record of any queue at *physical_offset*, with the size in its head.

    None if there is no record, or if it ends above the physical offset *below*. An invalid one carries a fault.
    """
    small = read_small_record(log, physical_offset, below=below)
    if small is not None:
        return small
    head = log.read(physical_offset, MIN_RECORD_SIZE)
    size = int.from_bytes(head[:_SIZE_FIELD], "big", signed=True)
    if len(head) < MIN_RECORD_SIZE or not MIN_RECORD_SIZE <= size <= below - physical_offset:
        return None
    return read_records(log, np.array((physical_offset,)), np.array((size,)))


def unchecked_records(log: FileRun, physical_offsets: IntArray, sizes: IntArray) -> StoredPieces | None:
    """Return the records that begin at *physical_offsets* (ascending) and have *sizes*, without a check of them.

    Records next to each other in the log are ranges of its files, which are not read here; where they are scattered,
    they are copied together. Returns None if some cannot be records, or are deleted: `read_records` gives the reason of
    each.
    """
    file_size = log.known.file_size
    if file_size == 0 or not _is_possible(physical_offsets, sizes, file_size).all():
        return None
    ends = physical_offsets + sizes
    begins = np.flatnonzero(
        np.concatenate(([True], (physical_offsets[1:] != ends[:-1]) | (physical_offsets[1:] % file_size == 0)))
    )
    if int(sizes.sum()) < _WORTH_A_RANGE * len(begins):
        return _copied(log, physical_offsets, sizes)
    lasts = np.append(begins[1:], len(sizes)) - 1
    ranges = [
        log.range(begin, end - begin)
        for begin, end in zip(physical_offsets[begins].tolist(), ends[lasts].tolist(), strict=True)
    ]
    found = [one for one in ranges if one is not None]
    return [*found] if len(found) == len(ranges) else None


def _copied(log: FileRun, physical_offsets: IntArray, sizes: IntArray) -> StoredPieces | None:
    plan = plan_reads(
        physical_offsets, sizes, file_size=log.known.file_size, gap=GAP_BYTES, most_together=_SCRATCH_BYTES
    )
    if plan is None:
        return None
    buffer = POOL.lend(plan.size)
    for run in plan.runs:
        if not _read_run(log, run, physical_offsets, sizes, buffer[run.place : run.place + run.size]):
            return None
    return [buffer.data]


def _read_once(
    log: FileRun,
    plan: ReadPlan,
    physical_offsets: IntArray,
    sizes: IntArray,
    topic: bytes,
    queue_id: int,
    numbers: Numbers | None,
    *,
    with_fields: bool,
) -> Records:
    places = plan.places
    buffer = POOL.lend(plan.size)
    missing: list[ReadRun] = []
    for run in plan.runs:
        target = buffer[run.place : run.place + run.size]
        if not _read_run(log, run, physical_offsets, sizes, target):
            target[:] = 0
            missing.append(run)
    rows = message.check_records(
        buffer,
        places=places,
        physical_offsets=physical_offsets,
        sizes=sizes,
        topic=topic,
        queue_id=queue_id,
        with_fields=with_fields,
        new_buffer=POOL.lend,
    )
    if numbers is None:
        has_faults = bool(rows["fault"].any())
    else:
        has_faults = (
            message.check_numbers(
                buffer, places, rows, numbers.queue_offsets, may_restart=numbers.may_restart, fault=_OTHER_NUMBER_FAULT
            )
            > 0
        )
    for run in missing:
        rows["fault"][run.records] = REMOVED_FAULT
    return Records(buffer, places, rows, is_sound=not has_faults and not missing)


def _read_run(log: FileRun, run: ReadRun, offsets: IntArray, sizes: IntArray, target: U8Array) -> bool:
    """Fill *target* with the records consecutively; the bytes between them are only read into the scratch buffer.

    offsets, sizes: of all records, of which *run* has some
    """
    if run.span == run.size:
        return log.read_into(run.physical_offset, target)
    scratch: U8Array | None = getattr(_thread, "scratch", None)
    if scratch is None:
        scratch = _thread.scratch = np.empty(_SCRATCH_BYTES, np.uint8)
    if not log.read_into(run.physical_offset, scratch[: run.span]):
        return False
    chosen = run.records
    message.copy_records(scratch, run.physical_offset, offsets[chosen], sizes[chosen], target, 0)
    return True


def _is_possible(physical_offsets: IntArray, sizes: IntArray, file_size: int) -> NDArray[np.bool_]:
    """Return the units that can be valid: their record is within one file."""
    if file_size == 0:
        return np.ones(len(sizes), np.bool_)
    possible: NDArray[np.bool_] = (physical_offsets >= 0) & (sizes > 0)
    possible &= physical_offsets % file_size + sizes <= file_size
    return possible


def _read_around(
    log: FileRun,
    offsets: IntArray,
    sizes: IntArray,
    readable: NDArray[np.bool_],
    topic: bytes,
    queue_id: int,
    numbers: Numbers | None,
) -> Records:
    """Leave out units that cannot be valid, and give them a fault."""
    if numbers is not None:
        numbers = numbers._replace(queue_offsets=numbers.queue_offsets[readable])
    inner = read_records(log, offsets[readable], sizes[readable], topic=topic, queue_id=queue_id, numbers=numbers)
    rows = np.zeros(len(sizes), inner.rows.dtype)
    rows["physical_offset"] = offsets
    rows["fault"] = int(Fault.LENGTH)
    rows[readable] = inner.rows
    places = np.zeros(len(sizes), np.int64)
    places[readable] = inner.places
    return Records(inner.buffer, places, rows)
