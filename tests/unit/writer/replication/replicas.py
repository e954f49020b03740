"""Pieces of a writer's log, and a replica's log over small real files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from services.writer.batch.batch import Batch
from services.writer.log.batch_journal import BatchJournal, stretch_of
from services.writer.log.segments import Segments
from services.writer.replication.piece import Piece
from services.writer.replication.replica_log import ReplicaLog
from tests.unit.writer.batches import batch_of
from tests.unit.writer.log.log_tails import FILE_SIZE, FailingDisk, Tail
from tidemark.store.batch_journal import encode_abort, journaled_end
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.paths import StorePaths

TOKEN = bytes(range(16))


def written(tail: Tail, *sizes: int) -> list[Batch]:
    """Append batches with bodies of these *sizes*; return them."""
    batches = [batch_of(b"%d" % (number % 10) * size) for number, size in enumerate(sizes)]
    tail.append(*batches)
    return batches


def pieces_of(tail: Tail, batches: list[Batch]) -> list[Piece]:
    """Return a piece for each of consecutive *batches*, with the blank records between them."""
    pieces = []
    ranges = [(one.appended.physical_offset, one.appended.end_offset) for one in batches if one.appended is not None]
    nexts = [begin for begin, _ in ranges[1:]] + [ranges[-1][1]]
    for (start, end), following in zip(ranges, nexts, strict=True):
        data = tail.log.read(start, end - start)
        stretch = stretch_of(start, np.frombuffer(data, np.uint8))
        pieces.append(Piece(start, data, (stretch,), blank=following - end))
    return pieces


def joined(*pieces: Piece) -> Piece:
    """Return consecutive *pieces* as one."""
    assert all(one.end == other.start for one, other in pairwise(pieces))
    batches = tuple(batch for piece in pieces for batch in piece.batches)
    return Piece(pieces[0].start, b"".join(piece.data for piece in pieces), batches, pieces[-1].blank)


class Replica:
    """A replica's log and its files."""

    def __init__(self, folder: Path) -> None:
        self.disk = FailingDisk()
        self.paths = StorePaths(folder)
        self.paths.writer.mkdir(parents=True)
        self.paths.abort.write_bytes(encode_abort(TOKEN))
        self.files = MappedFileQueue(self.paths.commit_log, FILE_SIZE, self.disk)
        self.log = ReplicaLog(Segments(self.files), self.journal, end=0)

    def journal(self, start: int) -> BatchJournal:
        return BatchJournal(self.paths.writer / "batches", self.disk, token=TOKEN, start=start)

    def bytes(self, end: int) -> bytes:
        """Return the log's bytes below *end*."""
        return b"".join(self.files.read(start, min(FILE_SIZE, end - start)) for start in range(0, end, FILE_SIZE))

    def recovered_end(self, floor: int = 0) -> int:
        """Return the end that a restart would find by the journal."""
        return journaled_end(self.paths, self.files, floor)

    def close(self) -> None:
        self.log.close()
        self.files.close()
