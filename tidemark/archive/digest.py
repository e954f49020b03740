"""Digests of messages by topic, day and queue: counts, limits, and a hash over all columns of all rows.

The hash is the exact sum of the rows' xxHash64, so it does not depend on their order. Spark expressions compute it for
the store and for Parquet files alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Spark's hash ignores nulls and array boundaries, so lengths and null flags are hashed as well.
_ROW = """xxhash64(
    queue_offset, physical_offset, size(keys), keys, isnull(tag), tag, isnull(body), body,
    size(properties), map_entries(properties), unix_micros(born_timestamp), unix_micros(store_timestamp),
    isnull(message_id), message_id, isnull(offset_msg_id), offset_msg_id
)"""
_OTHER_COLUMNS_BYTES = 128  # estimate per message without its body, for file sizes


class DigestKey(NamedTuple):
    """Key of the messages that one digest covers."""

    topic: str
    day: str
    queue_id: int


class Digest(NamedTuple):
    """Digest of one group. Minimum and maximum are inclusive; content: the hash; size: approximate bytes."""

    rows: int
    min_offset: int
    max_offset: int
    max_physical_offset: int
    content: int
    size: int


def digest(messages: DataFrame) -> dict[DigestKey, Digest]:
    """Return the digest of each group, in order."""
    found = messages.groupBy("topic", "day", "queue_id").agg(
        f.count("*").alias("rows"),
        f.min("queue_offset").alias("min_offset"),
        f.max("queue_offset").alias("max_offset"),
        f.max("physical_offset").alias("max_physical_offset"),
        f.sum(f.expr(_ROW).cast("decimal(20, 0)")).alias("content"),
        f.sum(f.expr(f"octet_length(body) + {_OTHER_COLUMNS_BYTES}")).alias("size"),
    )
    columns = [column.to_pylist() for column in found.toArrow().itercolumns()]
    return dict(sorted((DigestKey(*row[:3]), _digest(*row[3:])) for row in zip(*columns, strict=True)))


def _digest(rows: int, least: int, greatest: int, physical: int, content: int, size: int) -> Digest:
    return Digest(rows, least, greatest, physical, int(content), size)


def differences(store: Mapping[DigestKey, Digest], archive: Mapping[DigestKey, Digest]) -> list[tuple[DigestKey, str]]:
    """Return the groups that differ, with a description of each difference."""
    return [
        (group, _difference(store.get(group), archive.get(group)))
        for group in sorted(store.keys() | archive.keys())
        if store.get(group) != archive.get(group)
    ]


def _difference(store: Digest | None, archive: Digest | None) -> str:
    if store is None:
        return "only the archive has this queue and day"
    if archive is None:
        return "only the store has this queue and day"
    if store.rows != archive.rows:
        return f"the store has {store.rows} messages, the archive {archive.rows}"
    if store[1:4] != archive[1:4]:
        return f"the store has messages {store[1]} to {store[2]}, the archive {archive[1]} to {archive[2]}"
    return f"the contents of the {store.rows} messages differ"
