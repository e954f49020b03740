"""One Spark session for all tests."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="module", autouse=True)
def _files_of_earlier_tests_are_closed() -> None:
    """Collect what earlier modules left: Spark's callbacks use `select`, limited to descriptors below 1,024."""
    gc.collect()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Return a session with two cores and no registration: Spark finds the source by its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = (
            SparkSession.builder.master("local[2,2]")  # a failed task is tried once more
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.streaming.stopTimeout", "20s")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()
