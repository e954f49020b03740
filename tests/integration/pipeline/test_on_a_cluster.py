"""`pipeline --once` on a Spark standalone cluster. For load and faults there: `make cluster-test`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.standalone import Standalone
from tests.integration.pipeline.test_pipeline_process import events, run_once
from tests.pipeline_runs import GOLDEN_SETTINGS, index_contents, queue_files, without_derived

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive]


def test_once_drains_a_brokers_log_in_two_workers(
    golden_store: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three tasks run in executors of both; the bytes are the broker's."""
    root = without_derived(golden_store("mixed/store"), tmp_path / "store")
    with Standalone(cores=3) as cluster:
        for name, value in cluster.environment.items():
            monkeypatch.setenv(name, value)
        done = run_once(root, **GOLDEN_SETTINGS["mixed/store"], shards=2, spark_cores_max=6)
        assert done.returncode == 0, done.stderr
    executors = events(done.stderr)["drain_finished"]["executors"]
    assert isinstance(executors, list)
    assert (len(executors), len(set(executors))) == (3, 2)
    assert queue_files(root) == queue_files(golden_store("mixed/store"))
    assert index_contents(root) == index_contents(golden_store("mixed/store"))
