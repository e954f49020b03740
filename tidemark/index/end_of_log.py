"""Finds the end of a log, for recovery and for a pipeline without a writer (docs/format.md §13)."""

from __future__ import annotations

import contextlib

from tidemark.errors import CorruptStoreError
from tidemark.format.check import Checker, Crc
from tidemark.index.log_walk import LogWalk
from tidemark.store.batch_journal import journaled_end
from tidemark.store.checkpoint import Checkpoint
from tidemark.store.flushed import read_floor_of_async
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.marks import Marks
from tidemark.store.originals.terms import clamp, current_term, read_terms
from tidemark.store.paths import StorePaths


def durable_floor(paths: StorePaths, log: MappedFileQueue) -> int:
    """Return the durable floor: a bad record below it is damage, not a torn end.

    It is the greatest of the confirm offset on disk and the durable marks. After a reboot of a machine whose writer ran
    in flush mode `async`, these may be ahead of the log; then it is the offset up to which that writer had synced. It
    is within the log's files.
    """
    return max(min(_claimed_floor(paths), log.capacity_end), log.min_offset)


def _claimed_floor(paths: StorePaths) -> int:
    if not current_term(paths.terms).is_of_this_boot():
        flushed = read_floor_of_async(paths.flushed)
        if flushed is not None:
            return flushed
    floor = 0
    if paths.checkpoint.exists() and paths.checkpoint.stat().st_size >= 4096:
        checkpoint = Checkpoint.open_read_only(paths.checkpoint)
        floor = checkpoint.committed_offset
        floor = 0 if floor >> 63 else floor  # negative: a broker has never confirmed
        checkpoint.close()
    with contextlib.suppress(CorruptStoreError, FileNotFoundError):  # no marks yet, or a kill during their creation
        floor = max(floor, _greatest_mark(paths))
    return floor


def _greatest_mark(paths: StorePaths) -> int:
    """Return the greatest durable mark, clamped: a mark of an older term may cover bytes that were cut since."""
    marks = Marks.open_read_only(paths.marks)
    try:
        terms, shards = read_terms(paths.terms), range(marks.shards)
        return max(clamp(marks.durable(i), of_term=marks.shard_term(i), terms=terms) for i in shards)
    finally:
        marks.close()


def find_end_of_log(paths: StorePaths, log: MappedFileQueue, floor: int | None = None) -> int:
    """Return the exclusive end of the last record in an unbroken sequence from the floor on. No writer runs.

    A writer's recovery finds the same end: if there is a journal of batches, no part of a torn batch counts.

    floor: a physical offset at which a record begins; None: the durable floor.
    """
    floor = durable_floor(paths, log) if floor is None else floor
    walk = LogWalk(log, max(floor, log.min_offset), Checker(crc=Crc.STOPS))
    for _ in walk.parts(limit=journaled_end(paths, log, floor), floor=floor):
        pass
    return walk.position
