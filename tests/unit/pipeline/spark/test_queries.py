"""The start and stop of the followers' queries."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.spark import queries as queries_module
from tests.waiting import until
from tidemark.store.lock import FolderLock


@pytest.fixture
def plan(tmp_path: Path) -> EpochPlan:
    plan = make_plan(PipelineSettings(store_root=tmp_path))
    plan.paths.indexer.mkdir(parents=True)
    return plan


class Query:
    """A streaming query in one of its states."""

    def __init__(self, *, is_active: bool = True, failure: Exception | None = None) -> None:
        self.isActive = is_active
        self._failure = failure
        self.on_stop: Callable[[], None] = lambda: None

    def exception(self) -> Exception | None:
        return self._failure

    def stop(self) -> None:
        self.on_stop()
        self.isActive = False


def queries(*fakes: Query) -> list[StreamingQuery]:
    return cast(list[StreamingQuery], list(fakes))


def test_the_failure_of_any_query_is_raised() -> None:
    assert not queries_module._has_ended(queries(Query(), Query()))
    assert queries_module._has_ended(queries(Query(), Query(is_active=False)))
    with pytest.raises(RuntimeError, match="task failed"):
        queries_module._has_ended(queries(Query(), Query(is_active=False, failure=RuntimeError("task failed"))))


def wait(plan: EpochPlan, *, timeout_s: float = 20, query: Query | None = None, stops: bool = False) -> None:
    stopping = threading.Event()
    if stops:
        stopping.set()
    queries_module._wait_until_followed(plan, queries(query or Query())[0], stopping, timeout_s)


def test_the_second_query_starts_when_every_shard_is_held(plan: EpochPlan) -> None:
    locks = [FolderLock(plan.lock_path(shard)) for shard in range(plan.all_shards)]
    waiting = threading.Thread(target=wait, args=(plan,), daemon=True)
    waiting.start()
    for lock in locks:
        waiting.join(0.1)  # several checks
        assert waiting.is_alive()
        lock.acquire()
    waiting.join(20)
    assert not waiting.is_alive()
    for lock in locks:
        lock.release()


def test_the_understudys_shards_do_not_count(plan: EpochPlan) -> None:
    """Neither while it holds them, nor while it syncs what it built: the first query's tasks may not have them yet."""
    shards = range(plan.all_shards)
    held = [FolderLock(path(shard)) for path in (plan.lock_path, plan.understudy_path) for shard in shards]
    syncing = [FolderLock(plan.last_sync_path(shard)) for shard in shards]
    for locks in (held, syncing):
        for lock in locks:
            lock.acquire()
        with pytest.raises(TimeoutError):
            wait(plan, timeout_s=0.1)
        for lock in locks:
            lock.release()


def test_shards_that_are_never_held_are_an_error_after_the_timeout(plan: EpochPlan) -> None:
    with pytest.raises(TimeoutError, match="start_timeout_s"):
        wait(plan, timeout_s=0.01)


def test_the_wait_for_followers_ends_with_the_pipeline_or_the_query(plan: EpochPlan) -> None:
    wait(plan, stops=True)
    wait(plan, query=Query(is_active=False))


def test_queries_are_stopped_after_their_tasks_have_ended(plan: EpochPlan) -> None:
    """Stopping a query during an epoch would kill Spark's thread."""
    syncing = FolderLock(plan.last_sync_path(plan.shards))
    syncing.acquire()
    query, is_task_done = Query(), threading.Event()
    seen: list[bool] = []
    query.on_stop = lambda: seen.append(is_task_done.is_set())
    stopping = threading.Thread(target=queries_module._stop, args=(plan, queries(query)))
    stopping.start()
    until(plan.stop_flag.exists)
    is_task_done.set()
    syncing.release()
    stopping.join(20)
    assert seen == [True]
    assert not query.isActive
