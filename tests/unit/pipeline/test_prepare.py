"""Preparation of a store for the first epoch."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.indexer.pipeline.plan import EpochPlan
from services.indexer.pipeline.prepare import (
    drop_above,
    own_indexer,
    own_log_without_writer,
    prepare,
)
from tests.builders import Placed
from tests.pipeline_runs import build, index_contents, plan_of, queue_files
from tests.unit.pipeline.keyed_log import SETTINGS, indexed_offsets, write_keyed_log
from tidemark.errors import StoreContradictionError, StoreLockedError
from tidemark.index.key_index import index_files
from tidemark.store.lock import FolderLock, StoreLock, lock_holder
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage

COUNT = 100
QUEUES, KEYS = 0, 1  # the two shards
STORAGE = DiskStorage()


@pytest.fixture
def placed(tmp_path: Path) -> list[Placed]:
    return write_keyed_log(tmp_path, COUNT)


@pytest.fixture
def plan(tmp_path: Path, placed: list[Placed]) -> EpochPlan:
    return plan_of(tmp_path, **SETTINGS)


@pytest.fixture
def built(plan: EpochPlan) -> EpochPlan:
    """Return the plan of a store whose whole log is built."""
    build(plan)
    return plan


@contextmanager
def marks_of(plan: EpochPlan) -> Iterator[Marks]:
    marks = Marks.open_to_write(plan.paths.marks, STORAGE, shards=plan.all_shards, term=0)
    yield marks
    marks.close()


def visible(plan: EpochPlan) -> list[int]:
    with marks_of(plan) as marks:
        return [marks.visible(shard) for shard in (QUEUES, KEYS)]


# -- locks ---------------------------------------------------------------------------------------------------------


def test_a_second_pipeline_on_a_store_is_refused_until_the_first_ends(plan: EpochPlan) -> None:
    with own_indexer(plan, STORAGE), pytest.raises(StoreLockedError), own_indexer(plan, STORAGE):
        pass
    with own_indexer(plan, STORAGE):
        pass


def test_without_a_writer_the_log_is_locked_against_one(plan: EpochPlan) -> None:
    with own_log_without_writer(plan) as alone:
        assert alone
        with pytest.raises(StoreLockedError):
            StoreLock(plan.paths.lock)
    assert lock_holder(plan.paths.lock) is None


def test_the_lock_of_a_running_writer_is_left_alone(plan: EpochPlan) -> None:
    lock = StoreLock(plan.paths.lock)
    with own_log_without_writer(plan) as alone:
        assert not alone
    assert lock_holder(plan.paths.lock) is not None
    lock.release()


def test_preparation_waits_for_a_task_that_still_holds_its_shard(built: EpochPlan) -> None:
    built.stop_flag.touch()  # the flag that ends the task stays until the task has ended
    task = FolderLock(built.lock_path(KEYS))
    task.acquire()
    preparing = threading.Thread(target=prepare, args=(built, STORAGE))
    preparing.start()
    preparing.join(0.1)
    assert preparing.is_alive() and built.stop_flag.exists()
    task.release()
    preparing.join(10)
    assert not preparing.is_alive() and not built.stop_flag.exists()


# -- files and marks -----------------------------------------------------------------------------------------------


def test_a_new_store_begins_at_0_with_empty_folders(plan: EpochPlan) -> None:
    plan.paths.indexer.mkdir(parents=True)
    prepare(plan, STORAGE)
    assert visible(plan) == [0, 0]
    assert all(list(plan.root.joinpath(name).iterdir()) == [] for name in ("consumequeue", "index"))


def test_a_broker_that_keeps_queues_in_rocksdb_is_refused_before_any_change(plan: EpochPlan) -> None:
    """Such a broker would ignore queue files."""
    sign = plan.paths.consume_queue / "CURRENT"
    sign.parent.mkdir()
    sign.touch()
    with pytest.raises(StoreContradictionError):
        prepare(plan, STORAGE)
    assert not plan.paths.indexer.exists()


def test_a_built_store_is_left_as_it_is(built: EpochPlan) -> None:
    before = queue_files(built.root), index_contents(built.root), visible(built)
    prepare(built, STORAGE)
    assert (queue_files(built.root), index_contents(built.root), visible(built)) == before


def test_an_index_of_another_program_is_discarded(built: EpochPlan) -> None:
    """Without marks, nothing shows which of its keys are complete."""
    built.paths.marks.unlink()
    prepare(built, STORAGE)
    assert index_files(built.paths.index) == []
    assert visible(built) == [0, 0]


@pytest.mark.parametrize(
    ("folder", "reset"), [("consumequeue", [QUEUES]), ("batchconsumequeue", [QUEUES]), ("index", [KEYS])]
)
def test_a_missing_folder_is_built_again_from_the_start(built: EpochPlan, folder: str, reset: list[int]) -> None:
    shutil.rmtree(built.root / folder)
    prepare(built, STORAGE)
    assert built.root.joinpath(folder).is_dir()
    assert visible(built) == [0 if shard in reset else built.limit for shard in (QUEUES, KEYS)]


# -- after a failed sync or a power cut ----------------------------------------------------------------------------


def break_off(plan: EpochPlan, durable: int, *, is_index_synced: bool) -> None:
    """Set the marks of a run that had published the whole log and synced it up to *durable* when a sync failed."""
    assert plan.limit is not None
    with marks_of(plan) as marks:
        for shard in (QUEUES, KEYS):
            marks.set_back(shard, durable)
            marks.publish(shard, plan.limit)
        marks.say_index_synced(is_index_synced)
    plan.failed_flag.touch()


def test_after_a_failed_sync_only_the_durable_marks_count(built: EpochPlan, placed: list[Placed]) -> None:
    durable = placed[COUNT // 2].physical_offset
    break_off(built, durable, is_index_synced=True)
    prepare(built, STORAGE)
    assert visible(built) == [durable, durable]
    assert not built.failed_flag.exists()


@pytest.mark.parametrize("synced", [COUNT // 2, COUNT - 1, COUNT])
def test_an_index_that_was_not_synced_loses_its_newest_file_and_keeps_each_older_key_once(
    built: EpochPlan, placed: list[Placed], synced: int
) -> None:
    """The newest file may hold any mix of old and new pages; the files before it were synced when they were full."""
    durable = placed[synced].physical_offset if synced < COUNT else built.limit
    assert durable is not None
    break_off(built, durable, is_index_synced=False)
    whole, newest = index_contents(built.root), index_files(built.paths.index)[-1]
    prepare(built, STORAGE)
    mark = visible(built)[KEYS]
    assert 0 < mark <= durable
    assert not newest.exists()
    assert indexed_offsets(built.root) == [record.physical_offset for record in placed if record.physical_offset < mark]
    build(built)
    assert index_contents(built.root) == whole


# -- the end of the log --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [COUNT, COUNT - 1, 50, 1, 0])
def test_units_and_keys_past_the_logs_end_are_dropped(built: EpochPlan, tmp_path: Path, kept: int) -> None:
    """The rest equals a build of the shorter log."""
    shorter = tmp_path / "shorter"
    write_keyed_log(shorter, kept)
    build(plan_of(shorter, **SETTINGS))
    end = plan_of(shorter, **SETTINGS).limit
    assert end is not None
    drop_above(built, end, STORAGE)
    assert visible(built) == [end, end]
    assert queue_files(built.root) == queue_files(shorter)
    assert index_contents(built.root) == index_contents(shorter)


def test_a_mark_below_the_logs_end_is_not_raised(built: EpochPlan, placed: list[Placed]) -> None:
    lower, end = placed[20].physical_offset, placed[60].physical_offset
    with marks_of(built) as marks:
        marks.set_back(QUEUES, lower)
    drop_above(built, end, STORAGE)
    assert visible(built) == [lower, end]
