"""What format("tidemark") can do on the Spark that is imported here: prints it as JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.built_store import BuiltStore

_MESSAGES = 9
_REFUSAL = "tidemark.errors.ArgumentIllegalError: "


def main() -> dict[str, str]:
    """version, batch, stream: `works`, or the reason why not."""
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
        told = [line for line in str(error).splitlines() if line.startswith(_REFUSAL)]
        return told[0].removeprefix(_REFUSAL) if told else str(error)
    rows = spark.read.parquet(str(folder / "out")).count()
    return "works" if rows == _MESSAGES else f"gives {rows} rows"


if __name__ == "__main__":
    print(json.dumps(main()))
