"""A task that is frozen at work loses its shards; when it wakes up it is refused, and has changed no byte."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
import pytest

from services.indexer.pipeline.epoch import run_share
from services.indexer.pipeline.plan import EpochPlan
from services.indexer.pipeline.prepare import drop_above, prepare
from tests.pipeline_runs import GOLDEN_SETTINGS, build, index_contents, plan_of, queue_files, without_derived
from tests.waiting import until
from tidemark.index.key_index import index_files
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage

STORE = "mixed/store"
CONTEXT = multiprocessing.get_context("spawn")  # a fork of a process with Spark and gRPC may crash
TIMEOUT_S = 60


class FreezingStorage(DiskStorage):
    """Freezes its process at a creation of an index file.

    number  which creation: 1 for the first
    after   True: the file is there, empty
    """

    def __init__(self, number: int, *, after: bool) -> None:
        self._left = number
        self._after = after

    def create(self, path: Path, size: int) -> int:
        self._left -= path.parent.name == "index"
        is_now = self._left == 0
        if is_now and not self._after:
            os.kill(os.getpid(), signal.SIGSTOP)
        descriptor = super().create(path, size)
        if is_now and self._after:
            os.kill(os.getpid(), signal.SIGSTOP)
        return descriptor


class Task:
    """A process that follows all shards of a plan until it is stopped, or fails."""

    def __init__(self, plan: EpochPlan, follower: int, storage: DiskStorage | None = None) -> None:
        self._outcome, told = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=follow, args=(plan, follower, told, storage), daemon=True)
        self._process.start()
        told.close()

    def is_frozen(self) -> bool:
        return psutil.Process(self._process.pid).status() == psutil.STATUS_STOPPED

    def send(self, number: int) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def outcome(self) -> str:
        assert self._outcome.poll(TIMEOUT_S), "the task neither ended nor failed"
        self._process.join()
        return str(self._outcome.recv())


def follow(plan: EpochPlan, follower: int, told: Connection, storage: DiskStorage | None) -> None:
    try:
        run_share(plan, plan.shares[0], follower=follower, storage=storage)
        told.send("done")
    except Exception as error:
        told.send(type(error).__name__)


def prepared_plan(root: Path) -> EpochPlan:
    """Return a plan with leases for one task at a time, which the store at *root* is ready for."""
    drained = plan_of(root, chunk_size_bytes=4096, **GOLDEN_SETTINGS[STORE])
    plan = replace(drained, epoch_ms=3_600_000, lease_ms=1_000, driver_pid=None)
    assert plan.limit is not None
    plan.paths.indexer.mkdir(parents=True)
    prepare(plan, DiskStorage())
    drop_above(plan, plan.limit, DiskStorage())
    return plan


@pytest.mark.parametrize("seen_bytes", [1, 500_000, 1_500_000])
def test_a_frozen_task_is_replaced_and_refused_when_it_resumes(
    golden_store: Callable[[str], Path], tmp_path: Path, seen_bytes: int
) -> None:
    """Queues and key index are those of an undisturbed pipeline."""
    twin = without_derived(golden_store(STORE), tmp_path / "twin")
    build(plan_of(twin, **GOLDEN_SETTINGS[STORE]))
    root = without_derived(golden_store(STORE), tmp_path / "store")
    plan = prepared_plan(root)
    assert plan.limit is not None and plan.limit > 2 * seen_bytes
    marks = Marks.open_read_only(plan.paths.marks)
    frozen = Task(plan, 0)
    until(lambda: marks.watermark() >= seen_bytes)
    frozen.send(signal.SIGSTOP)
    stopped_at = marks.watermark()
    assert stopped_at < plan.limit, "the task must be frozen during its work"
    standby = Task(plan, 1)
    until(lambda: marks.watermark() == plan.limit)
    frozen.send(signal.SIGCONT)
    assert frozen.outcome() == "StoreLockedError"
    until(lambda: marks.watermark() == plan.limit)
    plan.stop_flag.touch()
    assert standby.outcome() == "done"
    assert marks.durable_floor() == plan.limit
    marks.close()
    assert queue_files(root) == queue_files(twin)
    assert index_contents(root) == index_contents(twin)


@pytest.mark.parametrize(("number", "after"), [(1, False), (2, False), (2, True)])
def test_a_task_that_is_frozen_at_the_creation_of_an_index_file_adds_none_later(
    golden_store: Callable[[str], Path], tmp_path: Path, number: int, after: bool
) -> None:
    twin = without_derived(golden_store(STORE), tmp_path / "twin")
    build(plan_of(twin, **GOLDEN_SETTINGS[STORE]))
    root = without_derived(golden_store(STORE), tmp_path / "store")
    plan = prepared_plan(root)
    marks = Marks.open_read_only(plan.paths.marks)
    frozen = Task(plan, 0, FreezingStorage(number, after=after))
    until(frozen.is_frozen)
    standby = Task(plan, 1)
    until(lambda: marks.watermark() == plan.limit)
    frozen.send(signal.SIGCONT)
    assert frozen.outcome() == "StoreLockedError"
    assert index_contents(root) == index_contents(twin)
    assert marks.index_file == int(index_files(root / "index")[-1].name)
    plan.stop_flag.touch()
    assert standby.outcome() == "done"
    marks.close()
    assert index_contents(root) == index_contents(twin)


def test_marks_that_a_previous_holder_overwrites_are_restored(
    golden_store: Callable[[str], Path], tmp_path: Path
) -> None:
    """A task that is frozen between its check and its store stores an old mark when it wakes up."""
    plan = prepared_plan(without_derived(golden_store(STORE), tmp_path / "store"))
    holder = Task(plan, 0)
    marks = Marks.open_to_write(plan.paths.marks, DiskStorage(), shards=plan.all_shards, term=0)
    until(lambda: marks.watermark() == plan.limit)
    for shard in (0, plan.shards):  # the last one is the key index
        marks.publish(shard, 1)
        until(lambda shard=shard: marks.visible(shard) == plan.limit)  # type: ignore[misc]
    marks.say_index_synced(True)
    until(lambda: not marks.is_index_synced)
    plan.stop_flag.touch()
    assert holder.outcome() == "done"
    assert marks.is_index_synced
    marks.close()
