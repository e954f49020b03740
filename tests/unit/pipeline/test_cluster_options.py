"""Options of a Spark session on a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.spark.job import cluster_options


@pytest.mark.parametrize(
    ("settings", "slots", "taken"),
    [({}, 6, "6"), ({}, None, None), ({"spark_cores_max": 8}, 6, "8"), ({"spark_cores_max": 8}, None, "8")],
)
def test_followers_use_the_cores_they_need_and_a_drain_uses_all(
    settings: dict[str, Any], slots: int | None, taken: str | None
) -> None:
    """This holds unless a number is configured."""
    assert cluster_options(PipelineSettings(**settings), slots).get("spark.cores.max") == taken


@pytest.mark.parametrize("timeout_ms", [2_000, 20_000, 120_000])
def test_executor_checks_are_more_frequent_than_the_executor_timeout(timeout_ms: int) -> None:
    """Otherwise Spark refuses to start; its own limit of a heartbeat is spark.network.timeout, 120 s."""
    options = cluster_options(PipelineSettings(spark_executor_timeout_ms=timeout_ms), 6)
    silent, beat, look = (
        int(options[f"spark.{name}"].removesuffix("ms"))
        for name in (
            "storage.blockManagerHeartbeatTimeoutMs",
            "executor.heartbeatInterval",
            "network.timeoutInterval",
        )
    )
    assert silent == timeout_ms
    assert 0 < beat <= silent / 2
    assert 0 < look <= silent / 2
    assert beat < 120_000
