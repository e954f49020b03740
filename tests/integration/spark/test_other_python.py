"""Executors that run another Python than the driver."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.integration.conftest import Served

pytestmark = pytest.mark.exhaustive  # needs its own Spark session

_READ = """
from pyspark.sql import SparkSession

session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
session.read.format("tidemark").options(path=PATH, subscribe="orders").load().collect()
"""
_OLDER = """
import collections, sys

Version = collections.namedtuple("Version", "major minor micro releaselevel serial")
sys.version_info = Version(3, sys.version_info.minor - 1, 0, "final", 0)
"""
_PYTHON = """#!/bin/sh
case "$*" in *pyspark.worker) export PYTHONPATH="{folder}:$PYTHONPATH" ;; esac
exec "{python}" "$@"
"""


def test_errors_of_spark_are_raised_unchanged(served: Served, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tasks run a Python that reports an older version; the driver's own processes run the right one."""
    served.put(b"one")
    folder = tmp_path_factory.mktemp("python")
    (folder / "sitecustomize.py").write_text(_OLDER)
    python = folder / "python"
    python.write_text(_PYTHON.format(folder=folder, python=sys.executable))
    python.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", f"PATH = {str(served.store.root)!r}\n{_READ}"],
        env=os.environ | {"PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    minor = sys.version_info.minor
    assert done.returncode == 1
    last = done.stderr[done.stderr.rindex("pyspark.errors.") :]
    assert "[PYTHON_VERSION_MISMATCH]" in last
    assert f"3.{minor - 1} than that in driver: 3.{minor}" in last
