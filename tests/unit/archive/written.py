"""Archives of a few messages, written without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidemark.archive.folder import publish
from tidemark.archive.manifest import ArchivedFile, ArchivedQueue, ArchiveManifest, StoreIdentity, save_manifest
from tidemark.archive.write import write_parts
from tidemark.store.storage import DiskStorage

DAY, DAY_MS = "2026-01-01", 1_767_225_600_000
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("queue_id", pa.int32()),
        ("queue_offset", pa.int64()),
        ("physical_offset", pa.int64()),
        ("keys", pa.list_(pa.string())),
        ("tag", pa.string()),
        ("body", pa.binary()),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("born_timestamp", pa.timestamp("us", "UTC")),
        ("store_timestamp", pa.timestamp("us", "UTC")),
        ("message_id", pa.string()),
        ("offset_msg_id", pa.string()),
        ("day", pa.string()),
        ("part", pa.int64()),
    ]
)


def row(topic: str, queue_offset: int, *, queue_id: int = 0, part: int = 0, day: str = DAY) -> dict[str, Any]:
    """Return one message as the tasks of the writing job get it."""
    at = pa.scalar((DAY_MS + queue_offset) * 1000, pa.timestamp("us", "UTC"))
    return {
        "topic": topic,
        "queue_id": queue_id,
        "queue_offset": queue_offset,
        "physical_offset": 1000 * queue_id + 100 * queue_offset,
        "keys": ["k"],
        "tag": None,
        "body": b"m%d" % queue_offset,
        "properties": [("x", "y")],
        "born_timestamp": at,
        "store_timestamp": at,
        "message_id": f"id{queue_offset}",
        "offset_msg_id": None,
        "day": day,
        "part": part,
    }


def batch(rows: Iterable[dict[str, Any]]) -> pa.RecordBatch:
    """Return the rows as one record batch."""
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)


def written(root: Path, *batches: pa.RecordBatch, row_group_bytes: int = 1 << 20) -> list[ArchivedFile]:
    """Write *batches* below *root* as a task does, and return its files."""
    told = pa.Table.from_batches(write_parts(root, "part-1", row_group_bytes=row_group_bytes)(iter(batches)))
    return [ArchivedFile.model_validate_json(text) for text in told["file"].to_pylist()]


def entry(root: Path, topic: str, offsets: Iterable[int]) -> ArchivedFile:
    """Return one file of queue 0 of *topic*."""
    [file] = written(root, batch(row(topic, offset) for offset in offsets))
    return file


def archive_of(folder: Path, topic: str, offsets: range) -> ArchiveManifest:
    """Write an archive of one file."""
    staging = folder / "staging" / "1"
    files = publish(folder, staging, [entry(staging, topic, offsets)], DiskStorage())
    manifest = ArchiveManifest(
        written_by="test",
        written_ms=0,
        store=StoreIdentity(store_name="tidemark-0", log_file_size=4096, term=0),
        physical_end=4096,
        queues=(ArchivedQueue(topic=topic, queue_id=0, first=offsets.start, next=offsets.stop, rows=len(offsets)),),
        files=tuple(files),
    )
    save_manifest(folder, manifest, DiskStorage())
    return manifest
