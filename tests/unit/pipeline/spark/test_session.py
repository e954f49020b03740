"""The environment in which a Spark session starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.spark import job
from services.indexer.pipeline.spark.session import start_session

NAMES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP", "PYTHONPATH")
CLUSTER = "spark://there:7077"


class Start:
    """Starts a session without a JVM and keeps the environment at that time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self._root = root
        self._environment: dict[str, str] = {}
        for name in NAMES:
            monkeypatch.setenv(name, "")  # the old value returns after the test
            monkeypatch.delenv(name)
        monkeypatch.setattr(job, "make_session", self._make)

    def _make(self, settings: PipelineSettings, plan: EpochPlan) -> None:
        self._environment = dict(os.environ)

    def __call__(self, master: str) -> dict[str, str]:
        settings = PipelineSettings(store_root=self._root, spark_master=master)
        start_session(settings, make_plan(settings))
        return self._environment


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Start:
    return Start(monkeypatch, tmp_path)


@pytest.mark.parametrize("master", ["", CLUSTER])
def test_driver_and_tasks_run_the_pipelines_own_interpreter(
    start: Start, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    """Another one on the PATH may have other versions of the libraries."""
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/another")
    environment = start(master)
    assert environment["PYSPARK_PYTHON"] == environment["PYSPARK_DRIVER_PYTHON"] == sys.executable


@pytest.mark.parametrize(
    ("master", "given", "expected"),
    [("", None, "127.0.0.1"), ("", "10.0.0.1", "10.0.0.1"), (CLUSTER, None, None), (CLUSTER, "10.0.0.1", "10.0.0.1")],
)
def test_a_local_session_listens_on_loopback_unless_an_address_is_given(
    start: Start, monkeypatch: pytest.MonkeyPatch, master: str, given: str | None, expected: str | None
) -> None:
    """The executors of a cluster must reach the driver."""
    if given is not None:
        monkeypatch.setenv("SPARK_LOCAL_IP", given)
    assert start(master).get("SPARK_LOCAL_IP") == expected


@pytest.mark.parametrize("given", [None, "/opt/more"])
def test_tasks_find_this_package_before_the_folders_of_the_environment(
    start: Start, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    if given is not None:
        monkeypatch.setenv("PYTHONPATH", given)
    assert start("")["PYTHONPATH"].split(os.pathsep) == [job.python_path(), *([given] if given else [])]
