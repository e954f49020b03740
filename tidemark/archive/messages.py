"""DataFrames of the messages of stretches, read by the Spark source, and of Parquet files, with the same columns."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from tidemark.archive.options import ArchiveSource
from tidemark.archive.plan import OffsetRange
from tidemark.spark.columns import SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

PARTITIONED_BY = ("topic", "day")
FILE_COLUMNS = tuple(name for name in SCHEMA.names if name not in PARTITIONED_BY)  # in a file's order
_DAY_US = 86_400_000_000
_MICROS = "unix_micros(store_timestamp)"
# Integers only, and days since the epoch: the result depends neither on the session's time zone nor on rounding.
_DAY = f"string(date_from_unix_date(int(({_MICROS} - pmod({_MICROS}, {_DAY_US})) div {_DAY_US})))"


def stored_messages(
    spark: SparkSession,
    source: ArchiveSource,
    stretches: Iterable[OffsetRange],
    *,
    tasks: int,
    columns: Iterable[str] = (),
) -> DataFrame:
    """Return exactly the messages of *stretches* with the UTC day of their store timestamp, without damaged messages.

    tasks    minimum number of partitions
    columns  read only these columns, without the day; default: all
    """
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for topic, queue_id, first, following in stretches:
        starts.setdefault(topic, {})[str(queue_id)] = first
        ends.setdefault(topic, {})[str(queue_id)] = following
    options = {
        "path": str(source.root),
        "assign": json.dumps({topic: [int(queue) for queue in queues] for topic, queues in starts.items()}),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        "failOnCorruption": "false",  # the caller counts and reports missing messages
        "minPartitions": str(tasks),
    }
    if source.state is not None:
        options["statePath"] = str(source.state)
    reader = spark.read.format("tidemark").options(**options)
    names = list(columns)
    if names:
        return reader.schema(StructType([SCHEMA[name] for name in names])).load()
    return reader.load().withColumn("day", f.expr(_DAY))


def archived_messages(spark: SparkSession, root: Path, files: Iterable[str]) -> DataFrame:
    """Return the messages of Parquet files below *root*, the folder of `topic=…/day=…`."""
    fields = [*(SCHEMA[name] for name in FILE_COLUMNS), *(StructField(name, StringType()) for name in PARTITIONED_BY)]
    reader = spark.read.schema(StructType(fields)).option("basePath", str(root))
    return reader.parquet(*(str(root / name) for name in files))
