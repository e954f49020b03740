"""A driver that writes numbers to a topic slowly, while a test kills the processes of its tasks."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

ROWS = 200_000
_TASKS = 4
_PAUSE_S = 0.3  # per batch of 10,000 rows: leaves time for a kill in the middle of a task


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same batches slowly."""
    for batch in batches:
        time.sleep(_PAUSE_S)
        yield batch


def main() -> None:
    given = json.loads(sys.argv[1])
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master(given["master"]).config("spark.ui.enabled", "false")
    for name, value in given["conf"].items():
        builder = builder.config(name, value)
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    rows = spark.range(0, ROWS, numPartitions=_TASKS).selectExpr("string(id) AS body")
    sink = rows.mapInArrow(slowly, "body string").write.format("tidemark").mode("append")
    sink.options(writers=given["writers"], url=given["url"], topic=given["topic"]).save()


if __name__ == "__main__":
    main()
