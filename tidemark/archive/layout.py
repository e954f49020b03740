"""Which message goes into which file: the queues of a topic's day, one after the other, cut into about equal parts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as f

from tidemark.archive.digest import Digest, Group

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Of a group: its day's first and last part, the messages of its day before it, its own first offset.
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
    """parts: how many files there are to be, numbered from 0; groups: a row each, columns of _SCHEMA.

    full_files  how many there would be, if topics and days did not keep messages apart
    """

    parts: int
    full_files: int
    groups: pa.Table


def lay_out(digests: Mapping[Group, Digest], *, file_bytes: int) -> Layout:
    """Files of about *file_bytes* for what is in *digests*, at least one a topic and day."""
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
    """*messages*, each with the number of its `part`; parts together, each in the order of queues and offsets.

    A task for each full file's worth: small parts share one.
    """
    groups = f.broadcast(spark.createDataFrame(layout.groups))
    numbered = messages.join(groups, ["topic", "day", "queue_id"]).withColumn("part", f.expr(_PART))
    return (
        numbered.select(*messages.columns, "part")
        .repartition(min(layout.parts, max(layout.full_files, spark.sparkContext.defaultParallelism)), "part")
        .sortWithinPartitions("part", "queue_id", "queue_offset")
    )
