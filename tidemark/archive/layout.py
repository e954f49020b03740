"""Assignment of messages to files: the queues of one topic and day in order, divided into parts of about equal size."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as f

from tidemark.archive.digest import Digest, DigestKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Per group: first and last part of its day, number of the day's messages before the group, its first queue offset.
_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("day", pa.string()),
        ("queue_id", pa.int32()),
        ("first_part", pa.int64()),
        ("last_part", pa.int64()),
        ("rows_before", pa.int64()),
        ("first_offset", pa.int64()),
        ("rows_a_part", pa.int64()),
    ]
)
_PART = "least(last_part, first_part + (rows_before + queue_offset - first_offset) div rows_a_part)"


class Layout(NamedTuple):
    """Division into files. parts: number of files, numbered from 0; groups: one row per group, columns of _SCHEMA.

    full_files  number of files if topics and days did not separate messages
    """

    parts: int
    full_files: int
    groups: pa.Table


def lay_out(digests: Mapping[DigestKey, Digest], *, file_bytes: int) -> Layout:
    """Return a layout of *digests* in files of about *file_bytes*, at least one per topic and day."""
    rows: list[tuple[str, str, int, int, int, int, int, int]] = []
    part = 0
    for (topic, day), members in itertools.groupby(sorted(digests), key=lambda group: group[:2]):
        groups = list(members)
        total = sum(digests[group].rows for group in groups)
        parts = min(total, max(1, -(-sum(digests[group].size for group in groups) // file_bytes)))
        before = 0
        for group in groups:
            own = digests[group]
            rows.append(
                (topic, day, group.queue_id, part, part + parts - 1, before, own.min_offset, -(-total // parts))
            )
            before += own.rows
        part += parts
    columns = zip(*rows, strict=True) if rows else [[] for _ in _SCHEMA]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    full_files = -(-sum(own.size for own in digests.values()) // file_bytes)
    return Layout(part, full_files, pa.table(arrays, schema=_SCHEMA))


def with_part(spark: SparkSession, messages: DataFrame, layout: Layout) -> DataFrame:
    """Return *messages* with their `part`, grouped by part and sorted by queue and queue offset.

    There is about one task per full file, so that small parts share a task.
    """
    groups = f.broadcast(spark.createDataFrame(layout.groups))
    numbered = messages.join(groups, ["topic", "day", "queue_id"]).withColumn("part", f.expr(_PART))
    return (
        numbered.select(*messages.columns, "part")
        .repartition(min(layout.parts, max(layout.full_files, spark.sparkContext.defaultParallelism)), "part")
        .sortWithinPartitions("part", "queue_id", "queue_offset")
    )
