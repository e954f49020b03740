"""`python -m benchmarks.spark_job JSON`: a Spark session that reads a source, and prints what it found as JSON.

    format, options  of the source
    columns          those that a batch reads, as DDL; "": all
    jars             what the session needs beside Spark
    triggers         0: a batch read to nowhere, warmed up once; else a stream to nowhere of at least so many triggers

Both sources' jobs are this program: same cores, same heap, same sink.
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

_HEAP = "2g"
_FIRST_TRIGGERS = 10  # which warm up


def main(job: dict[str, Any]) -> dict[str, float]:
    """messages, seconds; or trigger_p50_ms, triggers."""
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
    try:
        return _triggers(spark, job) if job["triggers"] else _batch(spark, job)
    finally:
        spark.stop()


def _batch(spark: SparkSession, job: dict[str, Any]) -> dict[str, float]:
    def reader() -> DataFrameReader:
        named = spark.read.format(job["format"]).options(**job["options"])
        return named.schema(job["columns"]) if job["columns"] else named

    messages = reader().load().count()  # and warm
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
        raise RuntimeError(f"only {len(busy)} triggers are left after the first {_FIRST_TRIGGERS}")
    return {
        "trigger_p50_ms": statistics.median(one["durationMs"]["triggerExecution"] for one in busy),
        "triggers": len(busy),
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
