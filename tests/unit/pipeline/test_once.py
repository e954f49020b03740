"""`pipeline --once`, with its tasks in this process."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from services.indexer.pipeline import once
from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.epoch import run_epoch
from services.indexer.pipeline.plan import EpochPlan
from services.indexer.pipeline.spark.scan import scan_planned
from tests.builders import Placed, properties, record_bytes, write_log
from tests.pipeline_runs import index_contents, queue_files
from tests.unit.pipeline.keyed_log import FIRST_MS, LOG_FILE, SETTINGS, STEP_MS, indexed_offsets, write_keyed_log
from tidemark.index.scan.scan_range import RangeProgress
from tidemark.settings.engine import Engine
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.lock import StoreLock
from tidemark.store.originals.terms import begin_term
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

COUNT = 150  # three log files
STORAGE = DiskStorage()


class TasksHere:
    """Tasks of a drain that run in this process, one after the other."""

    def __init__(self) -> None:
        self.fails = False
        self.was_trusted = True  # by a broker, during the build

    def start(self) -> None: ...

    def slots(self) -> int:
        return 1

    def scan(self, plan: EpochPlan) -> list[RangeProgress]:
        assert plan.scanned is not None
        return [scan_planned(plan, number) for number in range(len(plan.scanned.ranges))]

    def drain(self, plan: EpochPlan) -> list[dict[str, Any]]:
        if self.fails:
            raise InterruptedError("killed")
        self.was_trusted = not plan.paths.abort.exists()
        return [asdict(run_epoch(plan, shard=shard, follower=0)) for shard in range(plan.all_shards)]


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> TasksHere:
    made = TasksHere()
    monkeypatch.setattr(once, "local_drain", made)
    return made


class Store:
    """A store whose log no pipeline has seen yet."""

    def __init__(self, root: Path, placed: list[Placed] | None = None) -> None:
        self.root = root
        self.paths = StorePaths(root)
        self.placed = placed or write_keyed_log(root, COUNT)
        self.paths.indexer.mkdir(parents=True)  # the entry point holds a lock in it

    def index(self, **settings: Any) -> MutableMapping[str, Any]:
        """Run a drain and return the event of its end."""
        with capture_logs() as events:
            once.run_once(
                PipelineSettings(store_root=self.root, once=True, pipeline=Engine.PLAIN, **SETTINGS, **settings),
                STORAGE,
            )
        (finished,) = (event for event in events if event["event"] == "drain_finished")
        return finished

    @property
    def end(self) -> int:
        last = self.placed[-1]
        return last.physical_offset + len(last.data)

    def checkpoint(self, field: Field) -> int:
        checkpoint = Checkpoint.open_read_only(self.paths.checkpoint)
        try:
            return checkpoint.get(field)
        finally:
            checkpoint.close()


@pytest.fixture
def store(tmp_path: Path, tasks: TasksHere) -> Store:
    return Store(tmp_path / "store")


def test_without_a_writer_the_log_is_indexed_up_to_its_torn_end(store: Store) -> None:
    """The end is the one that a writer's recovery finds: the first half of a record does not count."""
    torn = record_bytes(physical_offset=store.end)
    path = store.root / "commitlog" / f"{store.end - store.end % LOG_FILE:020d}"
    with path.open("r+b") as file:
        file.seek(store.end % LOG_FILE)
        file.write(torn[: len(torn) // 2])
    finished = store.index()
    assert finished["watermark"] == store.end
    assert (finished["records"], finished["keys"], finished["damages"]) == (COUNT, COUNT, 0)
    assert indexed_offsets(store.root) == [record.physical_offset for record in store.placed]


def test_the_event_counts_records_and_their_keys(tmp_path: Path, tasks: TasksHere) -> None:
    fields = [{"queue_offset": number, "properties": properties({"KEYS": "a b"})} for number in range(3)]
    finished = Store(tmp_path, write_log(tmp_path / "commitlog", LOG_FILE, fields)).index()
    assert (finished["records"], finished["keys"]) == (3, 6)


def test_a_second_run_has_nothing_left_to_build(store: Store) -> None:
    store.index()
    built = queue_files(store.root), index_contents(store.root)
    finished = store.index()
    assert (finished["watermark"], finished["records"], finished["bytes"]) == (store.end, 0, 0)
    assert (queue_files(store.root), index_contents(store.root)) == built


def test_while_a_writer_runs_only_the_committed_part_is_indexed(store: Store) -> None:
    """The writer owns the checkpoint's times and `abort`, so the drain leaves both as they are."""
    committed = store.placed[60].physical_offset
    store.paths.terms.parent.mkdir(parents=True)
    begin_term(store.paths.terms, committed, STORAGE)
    checkpoint = Checkpoint.open_to_write(store.paths.checkpoint, STORAGE)
    checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, committed)
    checkpoint.set(Field.LOGICS_MESSAGE_TIMESTAMP, 5)
    checkpoint.close()
    writer = StoreLock(store.paths.lock)
    finished = store.index()
    assert (finished["watermark"], finished["records"]) == (committed, 60)
    assert store.checkpoint(Field.LOGICS_MESSAGE_TIMESTAMP) == 5
    assert not store.paths.abort.exists()
    writer.release()


@pytest.mark.parametrize("was_clean", [True, False])
def test_a_broker_trusts_the_store_again_only_if_it_was_left_clean(
    store: Store, tasks: TasksHere, was_clean: bool
) -> None:
    if not was_clean:
        store.paths.abort.touch()
    store.index()
    assert not tasks.was_trusted, "queues are incomplete during the build"
    assert store.paths.abort.exists() is not was_clean
    last_ms = FIRST_MS + STEP_MS * (COUNT - 1)
    assert store.checkpoint(Field.LOGICS_MESSAGE_TIMESTAMP) == (last_ms if was_clean else 0)


def test_a_drain_that_fails_leaves_a_store_that_no_broker_trusts(store: Store, tasks: TasksHere) -> None:
    tasks.fails = True
    with pytest.raises(InterruptedError):
        store.index()
    assert store.paths.abort.exists()


def test_a_log_that_is_scanned_in_ranges_gives_the_same_files(store: Store, tmp_path: Path) -> None:
    """The scans are temporary."""
    read = Store(tmp_path / "read")
    assert read.index()["ranges"] == 0, "one slot: each task reads the log itself"
    finished = store.index(scan_range_size_bytes=LOG_FILE)
    assert (finished["ranges"], finished["records"]) == (3, COUNT)
    assert queue_files(store.root) == queue_files(read.root)
    assert index_contents(store.root) == index_contents(read.root)
    assert not store.paths.indexer.joinpath("scan").exists()


def test_the_scans_of_a_drain_that_failed_are_used_again(store: Store, tasks: TasksHere) -> None:
    tasks.fails = True
    with pytest.raises(InterruptedError):
        store.index(scan_range_size_bytes=LOG_FILE)
    tasks.fails = False
    finished = store.index(scan_range_size_bytes=LOG_FILE)
    assert (finished["reused_ranges"], finished["records"]) == (3, COUNT)
