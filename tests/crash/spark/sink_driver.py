"""A driver that streams a topic into another, and kills itself in the middle of some batches."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

ROWS = 1000


def main() -> None:
    given = json.loads(sys.argv[1])
    folder = Path(given["folder"])
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    driver, java = os.getpid(), spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]

    def kill_now_and_then(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for start in range(0, batch.num_rows, ROWS):
                yield batch.slice(start, ROWS)
                if given["run"] < given["kills"] and start >= ROWS * given["run"]:
                    time.sleep(0.3)  # the rows so far are sent, or being sent
                    os.kill(java, signal.SIGKILL)
                    os.kill(driver, signal.SIGKILL)

    source = spark.readStream.format("tidemark").options(
        url=given["url"], subscribe="in", startingOffsets="earliest", maxOffsetsPerTrigger="25000"
    )
    rows = source.load().select("body").mapInArrow(kill_now_and_then, "body binary")
    sink = rows.writeStream.format("tidemark").options(writers=given["writers"], url=given["url"], topic="out")
    query = sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
