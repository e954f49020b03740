"""Files of a range's scan: an Arrow file of rows and one of keys, with a record batch for each part of the walk.

The rows file gets its name last, so a range with a rows file is complete. It records the scanned log files and their
times of modification: if these differ, the range is scanned again. The files are temporary and never synced.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson
import pyarrow as pa

from tidemark.index.log_walk import LogPart
from tidemark.index.scan.log_range import LogRange
from tidemark.index.scan.part_table import (
    KEY_SCHEMA,
    batch_to_keys,
    batch_to_part,
    keys_to_batch,
    row_schema,
    rows_to_batch,
)
from tidemark.store.mapped_file_queue import MappedFileQueue, file_name

_FORMAT = 1
_IDENTITY = b"tidemark"
_PROGRESS = ".done"  # suffix of the file with the range's count of scanned bytes, big-endian


class Scanned(NamedTuple):
    """Counts of a range's scan. end_offset: exclusive; the range's end, unless the log ends before it."""

    records: int
    keys: int
    damages: int
    end_offset: int


class RangeFiles:
    """The two files of one range."""

    def __init__(self, folder: Path, log_range: LogRange) -> None:
        name = f"{file_name(log_range.start)}-{file_name(log_range.end)}"
        self.range = log_range
        self.rows = folder / f"{name}.rows"
        self.keys = folder / f"{name}.keys"
        self._progress = folder / f"{name}{_PROGRESS}"

    def is_scan_of(self, log: MappedFileQueue, *, light: bool) -> bool:
        """Return True if the range has been scanned and its log files have not changed since."""
        try:
            with pa.memory_map(str(self.rows)) as file:
                found = pa.ipc.open_file(file).schema.metadata or {}
        except (FileNotFoundError, pa.ArrowInvalid):
            return False
        return bool(found.get(_IDENTITY) == _identity(log, self.range, light=light) and self.keys.exists())

    def write(self, log: MappedFileQueue, parts: Iterator[LogPart], *, light: bool) -> Scanned:
        """Write the parts of a walk over the range. Concurrent writers of one range write identical files."""
        schema = row_schema(light=light).with_metadata({_IDENTITY: _identity(log, self.range, light=light)})
        unique = uuid.uuid4().hex
        rows, keys = (path.with_name(f"{path.name}.{unique}") for path in (self.rows, self.keys))
        scanned = Scanned(0, 0, 0, self.range.start)
        with pa.ipc.new_file(str(rows), schema) as row_file, pa.ipc.new_file(str(keys), KEY_SCHEMA) as key_file:
            for part in parts:
                batch, metadata = rows_to_batch(part, schema)
                hashes = keys_to_batch(part)
                row_file.write_batch(batch, custom_metadata=metadata)
                key_file.write_batch(hashes)
                scanned = Scanned(
                    scanned.records + batch.num_rows,
                    scanned.keys + hashes.num_rows,
                    scanned.damages + len(part.damages),
                    part.end_offset,
                )
                self._progress.write_bytes((part.end_offset - self.range.start).to_bytes(8, "big"))
        keys.rename(self.keys)
        rows.rename(self.rows)
        return scanned

    def parts(self, *, rows: bool, keys: bool) -> Iterator[LogPart]:
        """Yield the parts of a complete scan, without rows or keys that are not requested."""
        with pa.memory_map(str(self.rows)) as row_map, pa.memory_map(str(self.keys)) as key_map:
            row_file, key_file = pa.ipc.open_file(row_map), pa.ipc.open_file(key_map)
            start = self.range.start
            for i in range(row_file.num_record_batches):
                found = row_file.get_batch_with_custom_metadata(i)
                batch = found.batch if rows else found.batch.slice(0, 0)
                part = batch_to_part(batch, dict(found.custom_metadata), start=start)
                yield part._replace(keys=batch_to_keys(key_file.get_batch(i))) if keys else part
                start = part.end_offset


def read_progress(folder: Path) -> int:
    """Return the scanned bytes of all ranges in *folder*, during the scan or afterwards."""
    done = 0
    for path in folder.glob(f"*{_PROGRESS}"):
        with contextlib.suppress(FileNotFoundError):
            done += int.from_bytes(path.read_bytes(), "big")
    return done


def _identity(log: MappedFileQueue, log_range: LogRange, *, light: bool) -> bytes:
    files = [start for start in log.starts if start < log_range.end and start + log.file_size > log_range.start]
    return orjson.dumps([_FORMAT, *log_range, light, [[start, _written_ns(log, start)] for start in files]])


def _written_ns(log: MappedFileQueue, start: int) -> int:
    """Return the time of a file's last write; 0 if retention has deleted it."""
    try:
        return os.fstat(log.opened(start).descriptor).st_mtime_ns
    except FileNotFoundError:
        return 0
