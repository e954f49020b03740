"""Records of the CommitLog by the units that point at them: few large reads, every record checked again."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format import message
from tidemark.format.dispatch_request import Fault, RequestArray, U8Array
from tidemark.format.message import MessageArray
from tidemark.format.reading import ReadPlan, plan_reads
from tidemark.read.buffers import POOL
from tidemark.read.file_run import FileRun

GAP_BYTES = 16_384  # between two records: reading over it is cheaper than another read
REMOVED = "REMOVED"  # a reason beside the faults: retention has taken the log file meanwhile
QUEUE_FILE_MISSING = "QUEUE_FILE_MISSING"
QUEUE_GAP = "QUEUE_GAP"  # no unit of a batch queue holds these offsets
OTHER_NUMBER = "QUEUE_OFFSET"  # another one: the record says another queue offset than its unit's place

_SCRATCH_BYTES = 512 << 10  # stays in a core's cache
_thread = threading.local()

IntArray = NDArray[np.int64]


class Skipped(NamedTuple):
    """A record that could not be shown, or units that are lost.

    reason         a Fault's name, OTHER_QUEUE, QUEUE_OFFSET, REMOVED, QUEUE_FILE_MISSING, or QUEUE_GAP
    message_count  queue offsets that are passed over, from queue_offset on
    """

    physical_offset: int  # -1 where the unit is lost
    queue_offset: int
    reason: str
    message_count: int = 1


class Numbers(NamedTuple):
    """Expected queue offsets of records. may_restart: 0 is accepted at any place, as of a broker (format.md §4)."""

    queue_offsets: IntArray
    may_restart: bool


class Records(NamedTuple):
    """Checked records, back to back in one buffer, in the order they were asked for."""

    buffer: U8Array
    places: IntArray  # where each starts in the buffer
    rows: RequestArray  # DISPATCH_REQUEST; `fault` is 0 for what may be shown

    @property
    def right(self) -> NDArray[np.bool_]:
        """Which may be shown."""
        right: NDArray[np.bool_] = self.rows["fault"] == 0
        return right

    def skipped(self, queue_offsets: IntArray, counts: IntArray | None = None) -> list[Skipped]:
        """Return the records that may not be shown. counts: messages that each holds; default: one."""
        if not self.rows["fault"].any():
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
        """MESSAGE rows of what may be shown, inner batches unwrapped."""
        return message.unwrap_records(self.buffer, self.places, self.rows, POOL.lend)

    def stored_bytes(self, chosen: NDArray[np.bool_] | None = None) -> bytes | memoryview:
        """The records that may be shown, as stored, back to back; only the *chosen* ones where given."""
        keep = self.right if chosen is None else self.right & chosen
        if keep.all():
            return self.buffer.data
        sizes = self.rows["message_size"][keep].astype(np.int64)
        return message.gather(self.buffer, self.places[keep], sizes, POOL.lend)[1].data


REMOVED_FAULT, _OTHER_NUMBER_FAULT = -1, -2
_OWN_REASONS = {REMOVED_FAULT: REMOVED, _OTHER_NUMBER_FAULT: OTHER_NUMBER}
ABSENT_FAULTS = frozenset(  # something else lies there than the unit says; a damaged body is the record's all the same
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

    topic, queue_id  the queue they must belong to; b"" for any
    numbers          queue offsets that they must say; None for anything
    with_fields      False: nobody will ask for messages, only for the records as stored
    raises           nothing for bad or missing records: their rows carry a fault

    What is wrong may be the read, and readers go on behind what they are not shown: bad records are read once more.
    """
    physical_offsets, sizes = np.ascontiguousarray(physical_offsets), np.ascontiguousarray(sizes)
    plan = plan_reads(
        physical_offsets, sizes, file_size=log.known.file_size, gap=GAP_BYTES, most_together=_SCRATCH_BYTES
    )
    if plan is None:
        readable = _is_possible(physical_offsets, sizes, log.known.file_size)
        return _read_around(log, physical_offsets, sizes, readable, topic, queue_id, numbers)
    asked = _Asked(physical_offsets, sizes, topic, queue_id, numbers)
    records = _read_once(log, asked, plan, with_fields=with_fields)
    if not records.rows["fault"].any() or (records.rows["fault"] == REMOVED_FAULT).any():
        return records
    return _read_once(log, asked, plan, with_fields=with_fields)


class _Asked(NamedTuple):
    """The arguments of `read_records`, all of them possible."""

    physical_offsets: IntArray
    sizes: IntArray
    topic: bytes
    queue_id: int
    numbers: Numbers | None


def _read_once(log: FileRun, asked: _Asked, plan: ReadPlan, *, with_fields: bool) -> Records:
    physical_offsets, sizes, topic, queue_id, numbers = asked
    places = plan.places
    buffer = POOL.lend(plan.size)
    missing: list[slice] = []
    for run in plan.runs:
        at, end = int(places[run.start]), int(places[run.stop - 1] + sizes[run.stop - 1])
        if not _read_run(log, physical_offsets[run], sizes[run], buffer[at:end]):
            buffer[at:end] = 0
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
    if numbers is not None:
        message.check_numbers(
            buffer, places, rows, numbers.queue_offsets, may_restart=numbers.may_restart, fault=_OTHER_NUMBER_FAULT
        )
    for run in missing:
        rows["fault"][run] = REMOVED_FAULT
    return Records(buffer, places, rows)


def _read_run(log: FileRun, offsets: IntArray, sizes: IntArray, target: U8Array) -> bool:
    """Fill *target* with the records back to back; what lies between them goes no further than the scratch buffer."""
    first, span = int(offsets[0]), int(offsets[-1] + sizes[-1] - offsets[0])
    if span == len(target):
        return log.read_into(first, target)
    scratch: U8Array | None = getattr(_thread, "scratch", None)
    if scratch is None:
        scratch = _thread.scratch = np.empty(_SCRATCH_BYTES, np.uint8)
    if not log.read_into(first, scratch[:span]):
        return False
    message.copy_records(scratch, first, offsets, sizes, target, 0)
    return True


def _is_possible(physical_offsets: IntArray, sizes: IntArray, file_size: int) -> NDArray[np.bool_]:
    """Whether a unit can be true: a record lies within one file."""
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
    """Leave out units that cannot be true, and give them a fault."""
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
