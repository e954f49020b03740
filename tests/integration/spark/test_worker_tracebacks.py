"""Standard error of queries that stop early."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.integration.conftest import QUEUES, Served

pytestmark = pytest.mark.exhaustive  # needs its own Spark session

_SHOW = """
from pyspark.sql import SparkSession

session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
orders = session.read.format("tidemark").options(path=PATH, subscribe="orders", minPartitions=8).load()
orders.select("body").show(1)
print(orders.limit(3).count(), len(orders.collect()))
"""


def test_tasks_whose_rows_are_not_needed_print_no_traceback(served: Served) -> None:
    """Each of eight tasks has more rows than a connection buffers. A later query gets all rows."""
    for number in range(320):
        served.store.append("orders", b"x" * 60_000, queue_id=number % QUEUES)
    served.store.publish()
    done = subprocess.run(
        [sys.executable, "-c", f"PATH = {str(served.store.root)!r}\n{_SHOW}"],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "3 320"), done.stderr
    assert "Traceback" not in done.stderr
