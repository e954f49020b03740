"""The process of Spark's driver that cannot be started, or ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.epoch_reports import EpochReports
from services.indexer.pipeline.plan import make_plan
from services.indexer.pipeline.spark import driver_process
from services.indexer.pipeline.spark.driver_process import DriverProcess
from tests.waiting import until


def test_a_driver_that_cannot_be_started_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses double up to the setting's. A stop ends a pause."""
    tries: list[float] = []

    def fail(self: DriverProcess) -> None:
        tries.append(0)
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(DriverProcess, "_start", fail)
    monkeypatch.setattr(driver_process, "_FIRST_PAUSE_S", 0.01)
    settings = PipelineSettings(store_root=tmp_path, spark_restart_pause_ms=1000)
    plan = make_plan(settings)
    driver = DriverProcess(settings, plan, EpochReports(plan, []))
    with capture_logs() as events:
        driver.start()
        until(enough(tries, 9))
        driver.stop()
    assert [event["event"] for event in events] == ["spark_lost"] * len(events)
    assert "Cannot allocate memory" in events[0]["error"]
    assert [event["next_start_s"] for event in events][:9] == [0.01 * 2**n for n in range(7)] + [1.0, 1.0]


def enough(tries: list[float], count: int) -> Callable[[], bool]:
    return lambda: len(tries) >= count
