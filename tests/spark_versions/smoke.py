"""The capabilities of format("tidemark") on the imported Spark, printed as JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.built_store import BuiltStore
from tidemark.client import Consumer

_MESSAGES = 9
_REFUSAL = "tidemark.errors.ArgumentIllegalError: "


def main(services: dict[str, str]) -> dict[str, str]:
    """Return version, and for batch and stream, reading and writing, `works` or the error.

    services  has `writers` and `url` of a running stack
    """
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = BuiltStore(folder / "store")
        store.topic("orders", queues=2)
        for number in range(_MESSAGES):
            store.append("orders", b"%d" % number, {"TAGS": "A", "KEYS": "k", "colour": "red"}, queue_id=number % 2)
        store.publish()
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        options = {"path": str(store.root), "subscribe": "orders"}
        return {
            "version": pyspark.__version__,
            "batch": _batch(spark, options),
            "stream": _stream(spark, options | {"startingOffsets": "earliest"}, folder),
            "batch sink": _batch_sink(spark, options, services),
            "stream sink": _stream_sink(spark, services, folder),
        }


def _batch(spark: SparkSession, options: dict[str, str]) -> str:
    frame = spark.read.format("tidemark").options(**options).load()
    bodies = sorted(int(bytes(row.body)) for row in frame.where("tag = 'A' and keys[0] = 'k'").collect())
    return "works" if bodies == list(range(_MESSAGES)) else f"gives {bodies}"


def _stream(spark: SparkSession, options: dict[str, str], folder: Path) -> str:
    frame = spark.readStream.format("tidemark").options(**options).load()
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.option("path", str(folder / "out")).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except PySparkException as error:
        return _told(error)
    rows = spark.read.parquet(str(folder / "out")).count()
    return "works" if rows == _MESSAGES else f"gives {rows} rows"


def _told(error: PySparkException) -> str:
    """Return Tidemark's sentence of the error."""
    told = [line for line in str(error).splitlines() if line.startswith(_REFUSAL)]
    return told[0].removeprefix(_REFUSAL) if told else str(error)


def _batch_sink(spark: SparkSession, options: dict[str, str], services: dict[str, str]) -> str:
    frame = spark.read.format("tidemark").options(**options).load().select("body", "tag", "keys", "properties")
    topic = f"batch-{uuid4().hex}"
    frame.write.format("tidemark").mode("append").options(topic=topic, **services).save()
    return _sent(services["url"], topic)


def _stream_sink(spark: SparkSession, services: dict[str, str], folder: Path) -> str:
    topic = f"stream-{uuid4().hex}"
    lines = folder / "lines"
    lines.mkdir()
    (lines / "some.txt").write_text("\n".join(map(str, range(_MESSAGES))))
    frame = spark.readStream.text(str(lines)).selectExpr("value AS body")
    writer = frame.writeStream.format("tidemark").options(topic=topic, **services)
    try:
        query = writer.option("checkpointLocation", str(folder / "sink")).trigger(availableNow=True).start()
        query.awaitTermination()
    except PySparkException as error:
        return _told(error)
    return _sent(services["url"], topic)


def _sent(url: str, topic: str) -> str:
    """Return `works` if each written number is there once."""
    found: list[int] = []
    with Consumer([topic], url=url) as consumer:
        while messages := consumer.poll(timeout_s=5):
            found += [int(message.body) for message in messages]
    return "works" if sorted(found) == list(range(_MESSAGES)) else f"gives {sorted(found)}"


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
