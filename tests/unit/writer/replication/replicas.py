"""Pieces of a writer's log, and a replica's log over small real files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from services.writer.batch.batch import Batch
from services.writer.config import WriterSettings
from services.writer.group_settings import ReplicationMode
from services.writer.log.batch_journal import BatchJournal, stretch_of
from services.writer.log.open_store import open_store, release_store
from services.writer.log.segments import Segments
from services.writer.replication.piece import Piece
from services.writer.replication.replica_disk import ReplicaDisk
from services.writer.replication.replica_log import ReplicaLog
from tests.unit.writer.batches import batch_of
from tests.unit.writer.log.log_tails import FILE_SIZE, FailingDisk, Tail
from tidemark.replication.known_state import KnownState
from tidemark.replication.member import Member
from tidemark.replication.member_files import MemberFiles
from tidemark.store.batch_journal import encode_abort, journaled_end
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage

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


def replica_settings(root: Path) -> WriterSettings:
    """Return the settings of member b of a group of two."""
    return WriterSettings(
        store_root=root,
        replication=ReplicationMode.SYNC,
        member="b",
        group_members="a=h:1,b=h:2",
        commit_log_segment_size_bytes=FILE_SIZE,
        min_free_disk_bytes=0,
    )


class OpenedReplica:
    """The store of member b, opened as its process does. It is closed by `close`."""

    def __init__(self, root: Path, storage: Storage | None = None) -> None:
        self._closed = False
        self.disk = FailingDisk()
        self.store = open_store(replica_settings(root), storage or self.disk)
        self.files = MemberFiles(self.store.paths.replication, self.store.storage)
        self.member = Member(
            f"b.{self.files.identity()}",
            end=self.store.recovered.end,
            confirm=self.store.checkpoint.committed_offset,
            promised=self.files.promised(),
            epochs=self.files.epochs(),
        )
        self.replica = ReplicaDisk(self.store, self.files, self.member, KnownState(self.files))

    def bytes(self) -> bytes:
        """Return the log's bytes."""
        log, end = self.store.segments.log, self.member.end
        return b"".join(log.read(start, min(FILE_SIZE, end - start)) for start in range(0, end, FILE_SIZE))

    def close(self) -> None:
        """Close the store, unless it is closed."""
        if not self._closed:
            self._closed = True
            self.replica.close()
            release_store(self.store)
