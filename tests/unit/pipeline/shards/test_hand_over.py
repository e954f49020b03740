"""Hand-over between the two followers."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from services.indexer import healthcheck
from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.shards.hand_over import HandOver, is_at_work, is_followed, seconds_to_deadline
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage


@pytest.fixture
def plan(tmp_path: Path) -> EpochPlan:
    made = make_plan(PipelineSettings(store_root=tmp_path, epoch_ms=100))
    made.paths.indexer.mkdir(parents=True)
    return made


@pytest.mark.parametrize("now", [0.0, 0.1, 4.999, 5.0, 7.3, 9.999, 1_000_003.7])
def test_the_followers_release_their_shards_half_a_period_apart(now: float) -> None:
    """One hands over at even, the other at odd multiples of the epoch, whenever they took over."""
    deadlines = [now + seconds_to_deadline(now, follower=follower, epoch_ms=5000) for follower in (0, 1)]
    assert deadlines[0] % 10 == pytest.approx(0, abs=1e-6) or deadlines[0] % 10 == pytest.approx(10, abs=1e-6)
    assert deadlines[1] % 10 == pytest.approx(5, abs=1e-6)
    assert all(now < deadline <= now + 10 for deadline in deadlines)


def test_a_shard_has_one_holder_and_passes_to_the_waiting_follower(plan: EpochPlan) -> None:
    """The standby continues as soon as the holder releases the shard."""
    first = HandOver(plan, [0], 0)
    first.acquire()
    taken = threading.Event()
    second = HandOver(plan, [0], 1)

    def wait() -> None:
        second.acquire()
        taken.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert not taken.wait(0.1)
    first.release()
    assert taken.wait(1)
    waiter.join()
    second.release()


def test_an_epoch_continues_until_a_standby_waits(plan: EpochPlan) -> None:
    """Releasing would leave a gap; with a standby the epoch ends, and stays ended."""
    holder = HandOver(plan, [0], 0)
    holder.acquire()
    time.sleep(0.25)  # more than two epochs of 100 ms
    assert not holder.is_over()
    standby = HandOver(plan, [0], 1)
    waiter = threading.Thread(target=standby.acquire)
    waiter.start()
    deadline = time.monotonic() + 2
    while not holder.is_over() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert holder.is_over()
    assert holder.is_over()
    holder.release()
    waiter.join()
    standby.release()


@pytest.mark.parametrize("is_short", [True, False])
def test_epochs_are_short_until_the_jvm_is_warm(plan: EpochPlan, is_short: bool) -> None:
    """The JVM compiles code that has run about twenty times; at half a minute an epoch that takes ten minutes."""
    plan = replace(plan, epoch_ms=3_600_000, short_until_s=time.time() + (60 if is_short else -1))
    holder, standby = HandOver(plan, [0], 0), HandOver(plan, [0], 1)
    holder.acquire()
    waiter = threading.Thread(target=standby.acquire)
    waiter.start()
    deadline = time.monotonic() + 1.5  # more than two short epochs
    while not holder.is_over() and time.monotonic() < deadline:
        time.sleep(0.01)
    is_over = holder.is_over()
    holder.release()
    waiter.join()
    standby.release()
    assert is_over == is_short


def test_a_split_assignment_of_shards_is_repaired_at_a_multiple_of_the_epoch(tmp_path: Path) -> None:
    """After killed tasks each follower may hold one shard.

    The next epoch of either, which would wait, starts only when all tasks of the previous one have released theirs.
    """
    plan = make_plan(PipelineSettings(store_root=tmp_path, epoch_ms=100, shards=2))
    plan.paths.indexer.mkdir(parents=True)
    holders = [HandOver(plan, [shard], shard) for shard in (0, 1)]
    for holder in holders:
        holder.acquire()
    deadline = time.monotonic() + 2  # ten periods
    while not any(holder.is_over() for holder in holders) and time.monotonic() < deadline:
        time.sleep(0.01)
    over = [holder.is_over() for holder in holders]
    for holder in holders:
        holder.release()
    assert any(over)


def test_is_followed_reads_the_lock_of_the_shard(plan: EpochPlan) -> None:
    """A health check needs no other information."""
    holder = HandOver(plan, [1], 0)
    assert not is_followed(plan, 1)
    holder.acquire()
    assert is_followed(plan, 1)
    holder.release()
    assert not is_followed(plan, 1)


def test_a_released_shard_is_at_work_until_its_last_sync_is_done(plan: EpochPlan) -> None:
    """A stop waits for that too."""
    first, second = HandOver(plan, [0], 0), HandOver(plan, [0], 1)
    first.acquire()
    first.pass_shards_on()
    assert not is_followed(plan, 0)
    assert is_at_work(plan, 0)
    second.acquire()
    second.release()
    assert is_at_work(plan, 0)
    first.release()
    assert not is_at_work(plan, 0)


def test_a_health_check_during_a_hand_over_succeeds(plan: EpochPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard briefly has no holder between two; only a lasting gap is reported."""
    monkeypatch.setenv("TIDEMARK_STORE_ROOT", str(plan.root))
    marks = Marks.open_to_write(plan.paths.marks, DiskStorage(), shards=plan.all_shards, term=1)
    marks.say_alive()
    holders = [HandOver(plan, [shard], 0) for shard in range(plan.all_shards)]
    for holder in holders[1:]:
        holder.acquire()
    next_one = threading.Timer(0.3, holders[0].acquire)
    next_one.start()
    assert healthcheck.main() == 0
    next_one.join()
    holders[0].release()
    assert healthcheck.main() == 1


def test_the_stop_flag_ends_every_epoch(plan: EpochPlan) -> None:
    """Tasks are asked to end before Spark stops the query."""
    holder = HandOver(plan, [0], 0)
    assert not holder.is_stopping()
    plan.stop_flag.touch()
    time.sleep(0.05)  # it polls every 20 ms
    assert holder.is_stopping()


def test_shards_of_one_task_are_acquired_together(plan: EpochPlan) -> None:
    """A waiting task gets all shards or none; with only some it would build only a part."""
    first = HandOver(plan, [0, 1], 0)
    first.acquire()
    assert all(is_followed(plan, shard) for shard in (0, 1))
    second = HandOver(plan, [0, 1], 1)
    waiter = threading.Thread(target=second.acquire)
    waiter.start()
    deadline = time.monotonic() + 10
    while not first.is_over() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert first.is_over(), "a standby is waiting"
    first.release()
    waiter.join()
    assert all(is_followed(plan, shard) for shard in (0, 1))
    second.release()
    assert not any(is_followed(plan, shard) for shard in (0, 1))
