"""The entry point: exit statuses."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from services.indexer.pipeline import __main__ as entry
from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.prepare import own_indexer
from tidemark.errors import CorruptStoreError
from tidemark.store.storage import DiskStorage


@pytest.fixture
def plan(tmp_path: Path) -> EpochPlan:
    return make_plan(PipelineSettings(store_root=tmp_path))


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
            return entry.main(["--once", "--pipeline", "plain", "--store-root", str(self.root), *arguments])


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
