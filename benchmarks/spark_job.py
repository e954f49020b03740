"""`python -m benchmarks.spark_job JSON`: runs a Spark session that reads a source, and prints the figures as JSON.

    format, options  of the source
    columns          columns that a batch reads, as DDL; "": all
    jars             jars that the session needs besides Spark
    triggers         0: a batch read to the noop sink, after one warm-up; otherwise a stream to the noop sink with at
                     least this many triggers

Tidemark's and Kafka's sources both run in this program, with the same cores, heap and sink.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameReader

from benchmarks.spark_floor import FloorDataSource

_HEAP = "2g"
_FIRST_TRIGGERS = 10  # the warm-up


def main(job: dict[str, Any]) -> dict[str, float]:
    """Run *job* and return messages and seconds, or trigger_p50_ms and triggers."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings: dict[str, Any] = {
        "spark.driver.memory": _HEAP,
        "spark.jars": ",".join(job["jars"]),
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(FloorDataSource)
    try:
        return _triggers(spark, job) if job["triggers"] else _batch(spark, job)
    finally:
        spark.stop()


def _batch(spark: SparkSession, job: dict[str, Any]) -> dict[str, float]:
    def reader() -> DataFrameReader:
        named = spark.read.format(job["format"]).options(**job["options"])
        return named.schema(job["columns"]) if job["columns"] else named

    messages = reader().load().count()  # also the warm-up
    began = time.perf_counter()
    reader().load().write.format("noop").mode("overwrite").save()
    return {"messages": messages, "seconds": time.perf_counter() - began}


def _triggers(spark: SparkSession, job: dict[str, Any]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        frame = spark.readStream.format(job["format"]).options(**job["options"]).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", folder)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        busy = [one for one in query.recentProgress if one["numInputRows"]][_FIRST_TRIGGERS:]
    if len(busy) < job["triggers"] - _FIRST_TRIGGERS:
        raise RuntimeError(
            f"the stream had only {len(busy)} triggers after the {_FIRST_TRIGGERS} of the warm-up, and needs "
            f"{job['triggers'] - _FIRST_TRIGGERS}"
        )
    return {
        "trigger_p50_ms": statistics.median(one["durationMs"]["triggerExecution"] for one in busy),
        "triggers": len(busy),
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
