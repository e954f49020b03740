"""A follower that releases a shard syncs its data while the next one builds: durable marks wait for both."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from services.indexer.pipeline.committed import CommittedOffset
from services.indexer.pipeline.epoch import run_share
from services.indexer.pipeline.plan import EpochPlan
from services.indexer.pipeline.prepare import prepare
from services.indexer.pipeline.shards.hand_over import HandOver
from services.indexer.pipeline.shards.shard_builder import ShardBuilder, ShardProgress
from tests.builders import properties, write_log
from tests.crash.pipeline.test_failed_sync import SyncRecordingStorage
from tests.pipeline_runs import plan_of
from tests.unit.store.recording_storage import KilledHere
from tests.waiting import until
from tidemark.errors import FlushFailedError
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage

COUNT = 300
_Follower = Future[list[ShardProgress]]
SIZES = {"index_slots": 16, "index_entries": 1000, "consume_queue_file_size_bytes": 400, "durable_interval_ms": 10}


class LastSyncStorage(SyncRecordingStorage):
    """A disk until its follower ends its epoch: from then each sync waits for `may_go_on`, and does *then*."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.holds_syncs = False
        self.waits, self.may_go_on = threading.Event(), threading.Event()
        self._then = then

    def fdatasync(self, descriptor: int) -> None:
        if self.holds_syncs and "/indexer/" not in os.readlink(f"/proc/self/fd/{descriptor}"):
            self.waits.set()
            assert self.may_go_on.wait(10)
            self._then()
        super().fdatasync(descriptor)


@dataclass
class Relay:
    """Follower 0 has synced to *places[0]*, built to *places[1]* and released; follower 1 builds to the end."""

    plan: EpochPlan
    places: list[int]
    storage: SyncRecordingStorage = field(default_factory=SyncRecordingStorage)

    def run(self, first: LastSyncStorage, pool: ThreadPoolExecutor, patch: pytest.MonkeyPatch) -> list[_Follower]:
        """Run the two followers; return once the second has built everything."""
        committed = self.places[:1]
        patch.setattr(CommittedOffset, "read", lambda _: committed[-1])
        catch_up, pass_shards_on = ShardBuilder.catch_up, HandOver.pass_shards_on

        def caught_up(builder: ShardBuilder) -> None:
            catch_up(builder)
            until(builder.has_caught_up)
            first.holds_syncs = builder._index is not None
            committed.append(self.places[1] if builder._index is not None else committed[-1])

        def gone(hand_over: HandOver) -> None:
            committed.append(self.places[2])
            pass_shards_on(hand_over)

        with patch.context() as only:
            only.setattr(ShardBuilder, "catch_up", caught_up)
            only.setattr(HandOver, "pass_shards_on", gone)
            followers = [pool.submit(self._follow, 0, first)]
            until(lambda: self.visible() == self.places[:1] * 2)
            followers.append(pool.submit(self._follow, 1, self.storage))
            until(lambda: self.visible() == self.places[2:] * 2)
        return followers

    def _follow(self, follower: int, storage: DiskStorage) -> list[ShardProgress]:
        return run_share(self.plan, [0, 1], follower=follower, storage=storage)

    def visible(self) -> list[int]:
        return self._marks(Marks.visible)

    def durable(self) -> list[int]:
        return self._marks(Marks.durable)

    def _marks(self, kind: Callable[[Marks, int], int]) -> list[int]:
        marks = Marks.open_read_only(self.plan.paths.marks)
        try:
            return [kind(marks, shard) for shard in (0, 1)]
        finally:
            marks.close()


@pytest.fixture
def relay(tmp_path: Path) -> Relay:
    records = ({"topic": b"t", "queue_offset": i, "properties": properties({"KEYS": f"k{i}"})} for i in range(COUNT))
    placed = write_log(tmp_path / "commitlog", 1 << 20, records)
    plan = replace(plan_of(tmp_path, **SIZES), epoch_ms=200)
    plan.paths.indexer.mkdir(parents=True)
    prepare(plan, DiskStorage())
    assert plan.limit is not None
    return Relay(plan, [placed[COUNT // 3].physical_offset, placed[2 * COUNT // 3].physical_offset, plan.limit])


@pytest.fixture
def pool(relay: Relay) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads
        relay.plan.stop_flag.touch()


def test_durable_marks_wait_for_the_last_sync_of_the_previous_holder(
    relay: Relay, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next follower builds meanwhile, and its messages wait for no sync."""
    first = LastSyncStorage()
    before, after = relay.run(first, pool, monkeypatch)
    assert first.waits.wait(10)
    time.sleep(0.1)  # ten intervals of durable marks
    assert relay.durable() == relay.places[:1] * 2
    first.may_go_on.set()
    before.result(10)
    until(lambda: relay.durable() == relay.places[2:] * 2)
    relay.plan.stop_flag.touch()
    after.result(10)


def test_files_of_a_holder_killed_after_release_are_synced_by_the_next_one(
    relay: Relay, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The successor syncs all files of the killed holder, which it has not written itself."""

    def die() -> None:
        raise KilledHere

    first = LastSyncStorage(then=die)
    before, after = relay.run(first, pool, monkeypatch)
    first.may_go_on.set()
    with pytest.raises(KilledHere):
        before.result(10)
    until(lambda: relay.durable() == relay.places[2:] * 2)
    relay.plan.stop_flag.touch()
    after.result(10)
    first_unsynced = COUNT // 3 * 20 // 400 * 400
    files = sorted(path for path in (tmp_path / "consumequeue/t/0").iterdir() if int(path.name) >= first_unsynced)
    assert len(files) > 5
    assert relay.storage.synced >= {str(path) for path in files}


def test_a_last_sync_makes_only_its_own_files_durable(
    relay: Relay, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The visible mark is already the next follower's at that time."""
    relay.storage = LastSyncStorage()
    relay.storage.holds_syncs = True  # its syncs block until they are released
    begin_to_finish = ShardBuilder.begin_to_finish

    def begin_late(builder: ShardBuilder) -> None:
        until(lambda: relay.visible() == relay.places[2:] * 2)
        begin_to_finish(builder)

    monkeypatch.setattr(ShardBuilder, "begin_to_finish", begin_late)
    first = LastSyncStorage()
    first.may_go_on.set()
    before, after = relay.run(first, pool, monkeypatch)
    before.result(10)
    assert relay.durable() == relay.places[1:2] * 2
    relay.storage.may_go_on.set()
    until(lambda: relay.durable() == relay.places[2:] * 2)
    relay.plan.stop_flag.touch()
    after.result(10)


def test_a_failed_last_sync_ends_the_successor_too(
    relay: Relay, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The successor has built on data that may be lost."""

    def fail() -> None:
        raise FlushFailedError("fdatasync failed: input/output error")

    first = LastSyncStorage(then=fail)
    before, after = relay.run(first, pool, monkeypatch)
    first.may_go_on.set()
    for follower in (before, after):
        with pytest.raises(FlushFailedError):
            follower.result(10)
    assert relay.plan.failed_flag.exists()
    assert relay.durable() == relay.places[:1] * 2
