"""Task of the writing job: writes the rows of whole parts, in order, to one Parquet file each and returns entries."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tidemark.errors import DiskFullError

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.archive.parquet_file import ParquetFile

WRITTEN = "file binary"  # one ArchivedFile as JSON per row
_FULL = (errno.ENOSPC, errno.EDQUOT)
Task = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


def partition_folder(topic: str, day: str) -> str:
    """Return the Hive-style folder, with special characters of paths escaped."""
    return f"topic={quote(topic, safe='-_')}/day={day}"


def write_parts(
    root: Path, prefix: str, *, row_group_bytes: int, on_file: Callable[[int], None] = lambda messages: None
) -> Task:
    """Return a function for mapInArrow of rows sorted by `part`; it writes files below *root* named *prefix*-….

    on_file  called in the task with the number of messages of each complete file
    """

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        parts = _Parts(root, prefix, row_group_bytes, on_file)
        try:
            for batch in batches:
                for rows in _runs(batch):
                    yield from parts.add(rows)
            yield from parts.close()
        except OSError as error:
            if error.errno in _FULL:
                raise DiskFullError(f"the disk is full: {error.strerror}", errno=error.errno) from error
            raise
        finally:
            parts.abandon()
        yield from [pa.RecordBatch.from_pydict({"file": pa.array([], pa.binary())})]

    return task


class _Parts:
    """Writer of consecutive files, of which at most one is open."""

    def __init__(self, root: Path, prefix: str, row_group_bytes: int, on_file: Callable[[int], None]) -> None:
        self._root, self._prefix, self._row_group_bytes = root, prefix, row_group_bytes
        self._on_file = on_file
        self._part: int | None = None
        self._file: ParquetFile | None = None

    def add(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add rows of one part. If they begin a new part, yield the entry of the finished file."""
        part, topic, day = (rows.column(name)[0].as_py() for name in ("part", "topic", "day"))
        columns = rows.drop_columns(["part", "topic", "day"])
        if part != self._part:
            yield from self.close()
            self._part, self._file = part, self._new_file(part, topic, day, columns.schema)
        assert self._file is not None
        self._file.add(columns)

    def _new_file(self, part: int, topic: str, day: str, schema: pa.Schema) -> ParquetFile:
        from pyspark import TaskContext

        from tidemark.archive.parquet_file import ParquetFile

        context = TaskContext.get()
        attempt = 0 if context is None else context.taskAttemptId()  # a retried task gets another name
        path = self._root / partition_folder(topic, day) / f"{self._prefix}-{part:05d}-{attempt}.parquet"
        return ParquetFile(path, schema, topic=topic, day=day, row_group_bytes=self._row_group_bytes)

    def close(self) -> Iterator[pa.RecordBatch]:
        """Finish the open file and yield its entry."""
        import pyarrow as pa

        if self._file is not None:
            written = self._file.finish(self._root)
            self._file = None
            self._on_file(written.rows)
            yield pa.RecordBatch.from_pydict({"file": pa.array([written.model_dump_json().encode()], pa.binary())})

    def abandon(self) -> None:
        """Abandon the open file after an error."""
        if self._file is not None:
            self._file.abandon()
            self._file = None


def _runs(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Divide rows that are sorted by part into slices of one part each."""
    import numpy as np

    parts = batch.column("part").to_numpy()
    edges = [0, *(np.flatnonzero(parts[1:] != parts[:-1]) + 1).tolist(), len(parts)]
    for first, following in itertools.pairwise(edges):
        if following > first:
            yield batch.slice(first, following - first)
