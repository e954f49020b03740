"""Reads of many queues with few messages each, by one compiled loop, without a wait for a disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.consume_queue import UNIT_SIZE
from tidemark.format.queue_reads import End, QueueRow, QueueScratch, read_queues
from tidemark.read.buffers import POOL
from tidemark.read.file_run import FileRange, FileRun
from tidemark.read.records import GAP_BYTES


class ShortQueue(NamedTuple):
    """Units to read of a simple queue.

    topic   the one that the records must have
    offset  queue offset of the first unit
    units   place of all units from there up to the visible end, in one file
    """

    topic: bytes
    queue_id: int
    offset: int
    units: FileRange
    most_messages: int


class StoredRecords(NamedTuple):
    """Checked records of a queue, back to back in their stored form, and their number."""

    data: memoryview
    messages: int


class ShortQueues:
    """Reads the records of many queues into one buffer of *size* bytes, for one answer. Not thread-safe."""

    def __init__(self, log: FileRun, size: int) -> None:
        self._log = log
        self._room = POOL.lend(size)
        self._scratch = QueueScratch(POOL.lend)
        self._log_files: dict[int, FileRange] = {}  # by their starts

    def read(self, queues: Sequence[ShortQueue], *, most_messages: int, most_bytes: int) -> list[StoredRecords]:
        """Return the records of *queues*, in their order, until a limit is reached.

        Ends before a queue whose data is not in memory, or damaged, or too much: `pull` reads that one.
        """
        topics = np.frombuffer(bytearray(b"".join(queue.topic for queue in queues)), np.uint8)
        rows, found = _rows_of(queues), list[StoredRecords]()
        file_size = self._log.known.file_size
        while file_size > 0:
            log = [(start, file.file.descriptor) for start, file in self._log_files.items()]
            read = read_queues(
                rows[len(found) :],
                topics,
                np.array(log, np.int64).reshape(-1, 2),
                file_size=file_size,
                gap=GAP_BYTES,
                most_messages=most_messages,
                most_bytes=most_bytes,
                scratch=self._scratch,
                buffer=self._room,
            )
            for begin, end, count in read.places:
                found.append(StoredRecords(self._room[begin:end].data, count))
                most_messages -= count
                most_bytes -= end - begin
            if read.places:
                self._room = self._room[read.places[-1][1] :]
            if read.end is not End.LOG_FILE or not self._open(read.log_file):
                break
        return found

    def _open(self, start: int) -> bool:
        """Open the file of the log that begins at *start*. Return False if it does not exist."""
        found = self._log.range(start, 1)
        if found is not None:
            self._log_files[start] = found
        return found is not None


def _rows_of(queues: Sequence[ShortQueue]) -> NDArray[np.int64]:
    rows, at = [], 0
    for topic, queue_id, offset, units, most in queues:
        end = at + len(topic)
        count = units.size // UNIT_SIZE
        rows.append(QueueRow(units.file.descriptor, units.offset, count, offset, most, queue_id, at, end))
        at = end
    return np.array(rows, np.int64)
