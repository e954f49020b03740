"""Group commit: the batches that share a sync, and the order of syncs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest

from services.writer.log.batch_journal import BatchJournal
from services.writer.log.flusher import Flusher, WrittenGroup
from tidemark.errors import FlushFailedError, StoreError
from tidemark.store.mapped_file_queue import MappedFileQueue

_LONG_S = 10.0


@dataclass
class Disk:
    """A log and journal whose syncs block until they are released, and fail on demand."""

    may_sync: threading.Event = field(default_factory=threading.Event)
    log_fails: bool = False
    journal_fails: bool = False
    synced: list[int] = field(default_factory=list)  # starts of the log's files
    told: int = 0  # syncs of the journal
    is_told: threading.Event = field(default_factory=threading.Event)

    def log_flush(self, start: int) -> None:
        assert self.may_sync.wait(_LONG_S)
        if self.log_fails:
            raise FlushFailedError("the log")
        self.synced.append(start)

    def journal_flush(self) -> None:
        if self.journal_fails:
            raise FlushFailedError("the journal")
        self.told += 1
        self.is_told.set()


class _Sync:
    def __init__(self, flush: object) -> None:
        self.flush = flush


@dataclass
class Flushing:
    """A started flusher with its reports."""

    disk: Disk
    flusher: Flusher
    flushed: list[int]
    failures: list[StoreError]


@pytest.fixture
def flushing() -> Iterator[Flushing]:
    disk = Disk()
    flushed: list[int] = []
    failures: list[StoreError] = []
    flusher = Flusher(
        cast(MappedFileQueue, _Sync(disk.log_flush)),
        cast(BatchJournal, _Sync(disk.journal_flush)),
        flushed_offset=0,
        on_flushed=lambda written: flushed.append(written.end),
        on_failure=failures.append,
        interval_s=None,
    )
    flusher.start()
    yield Flushing(disk, flusher, flushed, failures)
    disk.may_sync.set()
    flusher.close()


def group(end: int) -> WrittenGroup:
    return WrittenGroup([], end, [0], end, appends=1)


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_groups_that_arrive_during_a_sync_share_the_next_one(flushing: Flushing, size: int) -> None:
    """One sync of log and journal covers all of it; large data is synced concurrently, small data in sequence."""
    flushing.flusher.hand_over(group(size))
    assert flushing.disk.is_told.wait(_LONG_S), "the first sync must be in progress"
    for times in (2, 3, 4):
        flushing.flusher.hand_over(group(times * size))
    flushing.disk.may_sync.set()
    flushing.flusher.close()
    assert flushing.flushed == [size, 4 * size]
    assert (len(flushing.disk.synced), flushing.disk.told) == (2, 2)
    assert flushing.flusher.flushed_offset == 4 * size
    groups = flushing.flusher.groups
    assert [sum(one.counts) for one in (groups.seconds, groups.batches, groups.bytes)] == [2, 2, 2]
    assert (groups.batches.total, groups.bytes.total) == (4, 4 * size)


@pytest.mark.parametrize("size", [10, 1 << 20])
@pytest.mark.parametrize("broken", ["log_fails", "journal_fails"])
def test_without_log_or_journal_nothing_is_flushed(flushing: Flushing, broken: str, size: int) -> None:
    """The failure is reported once; nothing is synced after it."""
    setattr(flushing.disk, broken, True)
    flushing.disk.may_sync.set()
    flushing.flusher.hand_over(group(size))
    flushing.flusher.close()
    flushing.flusher.hand_over(group(2 * size))
    assert (flushing.flushed, flushing.flusher.flushed_offset) == ([], 0)
    assert len(flushing.failures) == 1
