"""The entry point: exit statuses, and the start and stop of the followers' queries."""

from __future__ import annotations

import threading
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery
from structlog.testing import capture_logs

from services.indexer.pipeline import __main__ as entry
from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.prepare import own_indexer
from tests.pipeline_runs import until
from tidemark.errors import CorruptStoreError
from tidemark.store.lock import FolderLock
from tidemark.store.storage import DiskStorage


@pytest.fixture
def plan(tmp_path: Path) -> EpochPlan:
    return make_plan(PipelineSettings(store_root=tmp_path))


# -- exit statuses -------------------------------------------------------------------------------------------------


class Main:
    """Runs the entry point for a drain, whose work is *drain*, and keeps its events."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.root = root
        self.drain: Callable[[], None] = lambda: None
        self.events: list[MutableMapping[str, Any]] = []
        for name in ("set_up_logging", "allow_many_files", "restore_signals"):  # they change the whole process
            monkeypatch.setattr(entry, name, lambda *_: None)
        monkeypatch.setattr(entry, "run_once", lambda settings, storage: self.drain())

    def __call__(self, *arguments: str) -> int:
        with capture_logs() as self.events:
            return entry.main(["--once", "--no-spark", "--store-root", str(self.root), *arguments])


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Main:
    return Main(monkeypatch, tmp_path)


def fail(error: Exception) -> Callable[[], None]:
    def drain() -> None:
        raise error

    return drain


def test_a_drain_that_is_done_is_status_0(main: Main, plan: EpochPlan) -> None:
    """No other pipeline can use the store meanwhile."""

    def drain() -> None:
        assert main() == 1
        assert main.events[0]["error"] == "StoreLockedError"

    main.drain = drain
    assert main() == 0
    with own_indexer(plan, DiskStorage()):
        pass


def test_bad_settings_are_status_2_and_touch_no_file(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("--shards", "0") == 2
    assert "TIDEMARK_SHARDS" in capsys.readouterr().err
    assert list(main.root.iterdir()) == []


def test_a_failure_of_the_store_is_status_1_with_its_facts(main: Main) -> None:
    main.drain = fail(CorruptStoreError("the marks are invalid", path="there"))
    assert main() == 1
    (event,) = main.events
    assert (event["event"], event["error"], event["path"]) == ("pipeline_failed", "CorruptStoreError", "there")
    assert event["message"] == "the marks are invalid"


def test_of_a_failed_querys_report_only_the_cause_is_an_event(main: Main) -> None:
    """Spark appends pages of plans to the task's traceback."""
    report = "Job aborted\nTraceback:\n  File x\nFlushFailedError: no sync\n\n=== Streaming Query ===\nPlan:\n  Scan\n"
    main.drain = fail(RuntimeError(report))
    assert main() == 1
    failed = next(event for event in main.events if event["event"] == "pipeline_failed")
    assert (failed["error"], failed["message"]) == ("RuntimeError", "FlushFailedError: no sync")


# -- the followers' queries ----------------------------------------------------------------------------------------


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
    assert not entry._has_ended(queries(Query(), Query()))
    assert entry._has_ended(queries(Query(), Query(is_active=False)))
    with pytest.raises(RuntimeError, match="task failed"):
        entry._has_ended(queries(Query(), Query(is_active=False, failure=RuntimeError("task failed"))))


def wait(plan: EpochPlan, *, timeout_s: float = 20, query: Query | None = None, stops: bool = False) -> None:
    stopping = threading.Event()
    if stops:
        stopping.set()
    entry._wait_until_followed(plan, queries(query or Query())[0], stopping, timeout_s)


def test_the_second_query_starts_when_every_shard_is_held(plan: EpochPlan) -> None:
    plan.paths.indexer.mkdir(parents=True)
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


def test_shards_that_are_never_held_are_an_error_after_the_timeout(plan: EpochPlan) -> None:
    plan.paths.indexer.mkdir(parents=True)
    with pytest.raises(TimeoutError, match="start_timeout_s"):
        wait(plan, timeout_s=0.01)


def test_the_wait_for_followers_ends_with_the_pipeline_or_the_query(plan: EpochPlan) -> None:
    plan.paths.indexer.mkdir(parents=True)
    wait(plan, stops=True)
    wait(plan, query=Query(is_active=False))


def test_queries_are_stopped_after_their_tasks_have_ended(plan: EpochPlan) -> None:
    """Stopping a query during an epoch would kill Spark's thread."""
    plan.paths.indexer.mkdir(parents=True)
    syncing = FolderLock(plan.last_sync_path(plan.shards))
    syncing.acquire()
    query, is_task_done = Query(), threading.Event()
    seen: list[bool] = []
    query.on_stop = lambda: seen.append(is_task_done.is_set())
    stopping = threading.Thread(target=entry._stop, args=(plan, queries(query)))
    stopping.start()
    until(plan.stop_flag.exists)
    is_task_done.set()
    syncing.release()
    stopping.join(20)
    assert seen == [True]
    assert not query.isActive
