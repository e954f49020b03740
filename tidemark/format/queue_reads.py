"""Reading of many queues at once, by a compiled loop that reads the page cache only."""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.dispatch_request import DISPATCH_REQUEST, U8Array
from tidemark.format.kernels import queue_reads as kernel
from tidemark.format.kernels.properties import N_NAMES
from tidemark.format.message import NewBuffer

MOST_UNITS = 4096  # of a queue
_SCRATCH_BYTES = 256 << 10  # of a read with gaps


class QueueRow(NamedTuple):
    """Units to read of a simple queue, in one file, and what their records must have.

    units_at            position of the first unit in the file, in bytes
    topic_at, topic_end place of the topic's bytes among those of all queues
    """

    descriptor: int
    units_at: int
    units: int
    queue_offset: int
    most_messages: int
    queue_id: int
    topic_at: int
    topic_end: int


class End(enum.Enum):
    """Why a read ended. OTHER: the next queue cannot be read so; LOG_FILE: it needs another file of the log."""

    DONE = kernel.DONE
    OTHER = kernel.OTHER
    LOG_FILE = kernel.LOG_FILE


class QueuesRead(NamedTuple):
    """Result of `read_queues`. places: for each queue read, begin and end in the buffer, and number of messages.

    log_file: physical offset of the start of the file that is needed
    """

    places: list[tuple[int, int, int]]
    end: End
    log_file: int


class QueueScratch:
    """Memory for `read_queues`, which one caller at a time can use."""

    def __init__(self, new_buffer: NewBuffer) -> None:
        self.bytes = new_buffer(_SCRATCH_BYTES)
        longs = new_buffer(8 * MOST_UNITS * (kernel.N_COLUMNS + kernel.N_RUN)).view(np.int64)
        self.columns = longs[: kernel.N_COLUMNS * MOST_UNITS].reshape(kernel.N_COLUMNS, MOST_UNITS)
        self.runs = longs[kernel.N_COLUMNS * MOST_UNITS :].reshape(MOST_UNITS, kernel.N_RUN)
        self.row, self.found = np.zeros(1, DISPATCH_REQUEST), np.empty((N_NAMES, 2), np.int64)


def read_queues(
    rows: NDArray[np.int64],
    topics: U8Array,
    log: NDArray[np.int64],
    *,
    file_size: int,
    gap: int,
    most_messages: int,
    most_bytes: int,
    scratch: QueueScratch,
    buffer: U8Array,
) -> QueuesRead:
    """Read and check the records of the queues *rows* (of QueueRow's values) into *buffer*, until a limit is reached.

    topics  the bytes of all topics
    log     for each open file of the log: physical offset of its start, and descriptor
    gap     read over gaps of at most this many bytes
    most_messages, most_bytes  of all queues; the first record of each queue is read regardless of its size
    """
    results = np.empty((len(rows), kernel.N_RESULT), np.int64)
    work = scratch.bytes, scratch.columns, scratch.runs, scratch.row, scratch.found
    count, end, log_file = kernel.read_queues(
        rows, topics, log, file_size, gap, most_messages, most_bytes, *work, buffer, results
    )
    return QueuesRead(list(map(tuple, results[:count].tolist())), End(end), log_file)
