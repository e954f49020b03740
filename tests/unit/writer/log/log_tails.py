"""A `LogTail` over small real files, on a disk that fails when a test says so."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from services.writer.batch.batch import Batch
from services.writer.batch.record_encoder import Encoder
from services.writer.dedup.recent_batches import RecentBatches, TailKeys
from services.writer.log.batch_journal import BatchJournal
from services.writer.log.disk_guard import DiskGuard
from services.writer.log.log_tail import LogTail
from services.writer.log.page_preallocation import PagePreallocation
from services.writer.log.queue_offsets import QueueOffsets
from services.writer.log.record_starts import RecordStarts
from services.writer.log.segments import Segments
from tests.builders import STORE_HOST
from tidemark.errors import DiskFullError
from tidemark.format.check import Checker
from tidemark.format.dispatch_request import Outcome
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.storage import DiskStorage

FILE_SIZE = 1 << 16


class FailingDisk(DiskStorage):
    """A disk that refuses writes of data, and of zeros, when a test says so."""

    def __init__(self) -> None:
        self.refuses_data = self.refuses_zeros = False

    def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
        is_zeros = not any(data)
        if self.refuses_zeros if is_zeros else self.refuses_data:
            os.pwrite(descriptor, bytes(data)[: len(data) // 2], at)
            raise DiskFullError("the disk is full: the test said so")
        super().pwrite(descriptor, data, at)


class Tail:
    """A `LogTail` over files of *FILE_SIZE* bytes, and its parts."""

    def __init__(self, folder: Path) -> None:
        self.disk = FailingDisk()
        self.log = MappedFileQueue(folder / "commitlog", FILE_SIZE, self.disk)
        self.offsets = QueueOffsets()
        self.window = RecentBatches(100, TailKeys(0))
        journal_disk = DiskStorage()
        self.journal = BatchJournal(folder / "batches", journal_disk, token=bytes(16), start=0)
        self.pages = PagePreallocation(self.log)
        self.tail = LogTail(
            Segments(self.log),
            Encoder(STORE_HOST),
            self.offsets,
            self.window,
            DiskGuard(folder, 0),
            self.journal,
            self.pages,
            RecordStarts(0),
            position=0,
            store_timestamp=0,
            buffer_size=1 << 14,
        )

    def append(self, *batches: Batch) -> None:
        for batch in batches:
            self.tail.append(batch)
        self.tail.write_out()

    def queue_offsets(self) -> list[int]:
        """Return the queue offsets of all records, by a walk over the files."""
        found: list[int] = []
        for start in self.log.starts:
            stop = min(self.tail.position - start, FILE_SIZE)
            data = np.frombuffer(bytearray(self.log.read(start, stop)), np.uint8)
            checked = Checker().check(data, base_offset=start)
            assert checked.outcome in (Outcome.END, Outcome.BLANK), checked.outcome
            found += [int(offset) for offset in checked.requests["queue_offset"]]
        return found
