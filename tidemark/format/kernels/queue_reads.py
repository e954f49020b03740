"""Reading of many queues at once: units and records from the page cache, with the check of each record.

A compiled loop, because a request for hundreds of queues with few messages each costs more for its Python calls than
for its reads. Anything out of the ordinary is left to `tidemark.read.pull`.
"""

from __future__ import annotations

import numpy as np

from tidemark.format import consume_queue
from tidemark.format.kernels.compiled import compiled, machine
from tidemark.format.kernels.integers import get_i8
from tidemark.format.kernels.messages import check_record, copy_records
from tidemark.format.kernels.positions import QUEUE_OFFSET
from tidemark.format.kernels.reading import choose_units, plan_reads
from tidemark.format.record import MIN_RECORD_SIZE

_UNIT = consume_queue.UNIT_SIZE
DESCRIPTOR, UNITS_AT, UNITS, NUMBER, MOST, QUEUE_ID, TOPIC_AT, TOPIC_END = range(8)
BEGIN, END, MESSAGES, N_RESULT = range(4)
OFFSETS, SIZES, NUMBERS, PLACES, N_COLUMNS = range(5)
N_RUN = 6  # values of a run of `plan_reads`
DONE, OTHER, LOG_FILE = 0, 1, 2


@compiled(inline="always")
def _is_read(descriptor, target, length, offset):  # type: ignore[no-untyped-def]
    return machine.read_cached(np.int32(descriptor), target, np.int64(length), np.int64(offset)) == length


@compiled
def _descriptor_of(log, start):  # type: ignore[no-untyped-def]
    for i in range(log.shape[0]):
        if log[i, 0] == start:
            return log[i, 1]
    return np.int64(-1)


@compiled
def read_queues(  # type: ignore[no-untyped-def]
    queues, names, log, file_size, gap, most_messages, most_bytes, scratch, columns, runs, row, found, buffer, results
):
    """Read the units of each queue and their records, and check these, until a limit is reached.

    queues   int64, a row for each queue: descriptor of its file, position and number of the units to read, queue offset
             of the first one, most messages, queue id, begin and end of the topic in *names*
    log      int64, a row for each open file of the log: physical offset of its start, and descriptor
    gap      read over gaps of at most this many bytes
    most_messages, most_bytes  of all queues together; the first record of each queue is read regardless of its size
    scratch  uint8; columns: int64, `N_COLUMNS` rows; runs: int64, six columns. Their lengths limit the units of a queue
    row, found  a DISPATCH_REQUEST and places of properties, for the check
    buffer   uint8, receives the records
    results  int64, receives for each queue: begin and end of its records in *buffer*, and their number
    returns  (number of queues read, why it ended, physical offset): DONE; OTHER: the next queue needs `pull`; LOG_FILE:
             the next queue needs the file of the log that begins at this physical offset
    """
    end = np.int64(0)
    offsets, sizes, numbers, places = columns[OFFSETS], columns[SIZES], columns[NUMBERS], columns[PLACES]
    for q in range(queues.shape[0]):
        if most_messages <= 0 or most_bytes <= 0:
            return q, DONE, np.int64(0)
        queue = queues[q]
        most = min(queue[MOST], most_messages)
        wanted = min(queue[UNITS], most, most_bytes // MIN_RECORD_SIZE + 1)
        if wanted > min(offsets.size, scratch.size // _UNIT):
            return q, OTHER, np.int64(0)
        if not _is_read(queue[DESCRIPTOR], scratch, wanted * _UNIT, queue[UNITS_AT]):
            return q, OTHER, np.int64(0)
        count, examined, size, _ = choose_units(
            scratch[: wanted * _UNIT], _UNIT, queue[NUMBER], most, most_bytes, True, numbers, offsets, sizes
        )
        if count == 0 or count != examined or end + size > buffer.size:
            return q, OTHER, np.int64(0)
        n_runs, _ = plan_reads(offsets[:count], sizes[:count], file_size, gap, scratch.size, places, runs)
        if n_runs < 0:
            return q, OTHER, np.int64(0)
        for r in range(n_runs):
            first, stop, offset, span, place, run_size = runs[r]
            start = offset - offset % file_size
            descriptor = _descriptor_of(log, start)
            if descriptor < 0:
                return q, LOG_FILE, start
            if span == run_size:
                if not _is_read(descriptor, buffer[end + place :], span, offset - start):
                    return q, OTHER, np.int64(0)
                continue
            if not _is_read(descriptor, scratch, span, offset - start):
                return q, OTHER, np.int64(0)
            copy_records(scratch, offset, offsets[first:stop], sizes[first:stop], buffer, end + place)
        topic = names[queue[TOPIC_AT] : queue[TOPIC_END]]
        for i in range(count):
            at = end + places[i]
            fault = check_record(buffer, at, sizes[i], offsets[i], topic, queue[QUEUE_ID], False, row[0], found)
            if fault != 0 or get_i8(buffer, at + QUEUE_OFFSET) != numbers[i]:
                return q, OTHER, np.int64(0)
        result = results[q]
        result[BEGIN], result[END], result[MESSAGES] = end, end + size, count
        end += size
        most_messages -= count
        most_bytes -= size
    return queues.shape[0], DONE, np.int64(0)
