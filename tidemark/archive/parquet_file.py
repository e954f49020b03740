"""ParquetFile: one Parquet file, written by row groups in the order of the rows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.archive.manifest import ArchivedFile
from tidemark.backup.copy import hash_file

BOUNDED = ("queue_id", "queue_offset", "physical_offset", "store_timestamp")  # columns by which readers can prune
_SORTED_BY = ("queue_id", "queue_offset")
_REPEATING = ("queue_id", "tag", "properties.key_value.key", "properties.key_value.value", "keys.list.element")


class ParquetFile:
    """Parquet file being written to *path* with the columns of *schema*. topic, day: common to all its messages."""

    def __init__(self, path: Path, schema: pa.Schema, *, topic: str, day: str, row_group_bytes: int) -> None:
        self._path, self._topic, self._day = path, topic, day
        self._row_group_bytes = row_group_bytes
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._rows = 0
        self._bounds: dict[str, tuple[int, int]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(
            path,
            schema.with_metadata({"tidemark.topic": topic, "tidemark.day": day}),
            compression="zstd",
            use_dictionary=list(_REPEATING),
            write_statistics=[*BOUNDED, "born_timestamp", "tag"],
            sorting_columns=[pq.SortingColumn(schema.get_field_index(name)) for name in _SORTED_BY],
        )

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows. They are written one row group at a time."""
        for name in BOUNDED:
            found = pc.min_max(batch.column(name).cast(pa.int64())).as_py()
            least, greatest = self._bounds.get(name, (found["min"], found["max"]))
            self._bounds[name] = min(least, found["min"]), max(greatest, found["max"])
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        self._rows += batch.num_rows
        if self._held_bytes >= self._row_group_bytes:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            table = pa.Table.from_batches(self._held).replace_schema_metadata(self._writer.schema.metadata)
            self._writer.write_table(table, row_group_size=table.num_rows)
            self._held, self._held_bytes = [], 0

    def finish(self, below: Path) -> ArchivedFile:
        """Close and sync the file, and return its manifest entry with its path relative to *below*."""
        self._flush()
        self._writer.close()
        with self._path.open("rb") as file:
            os.fsync(file.fileno())
            size = os.fstat(file.fileno()).st_size
        return ArchivedFile(
            path=str(self._path.relative_to(below)),
            topic=self._topic,
            day=self._day,
            rows=self._rows,
            size=size,
            sha256=hash_file(self._path, advance=lambda count: None),
            **manifest_bounds(self._bounds),
        )

    def abandon(self) -> None:
        """Close the unfinished file."""
        self._writer.close()


def manifest_bounds(bounds: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """Return the limits under the manifest's names, with times converted from microseconds to milliseconds."""
    told: dict[str, int] = {}
    for name, edges in bounds.items():
        is_time = name.endswith("timestamp")
        for edge, value in zip(("min", "max"), edges, strict=True):
            told[f"{edge}_{name}{'_ms' if is_time else ''}"] = value // 1000 if is_time else value
    return told
