"""Conversion of Spark's report of a failed task into the original error."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from tidemark.archive.spark_job import cause_of
from tidemark.errors import DiskFullError, OffsetTooSmallError, StoreError, UnavailableError

_TASK = """[DATA_SOURCE] An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "reading.py", line 1, in read
    raise error
ValueError: something before
During handling of the above exception, another exception occurred:
tidemark.errors.{name}: {message}

JVM stacktrace:
org.apache.spark.SparkException: tidemark.errors.StoreClosedError: not this
"""


@pytest.mark.parametrize(
    ("name", "kind"), [("OffsetTooSmallError", OffsetTooSmallError), ("DiskFullError", DiskFullError)]
)
def test_a_tidemark_error_in_a_task_is_raised_unchanged(name: str, kind: type[StoreError]) -> None:
    error = cause_of(PySparkException(_TASK.format(name=name, message="queue 0 of orders begins at 9")))
    assert type(error) is kind
    assert error.message == "queue 0 of orders begins at 9"


def test_other_spark_failures_are_reported_in_one_line() -> None:
    """Pages of query plans are cut."""
    error = cause_of(PySparkException("Job aborted: task 3 failed\nand more\nof it"))
    assert (type(error), error.message) == (UnavailableError, "the Spark job failed: Job aborted: task 3 failed")
