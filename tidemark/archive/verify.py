"""Verification of an archive's files against the manifest, without Spark and without the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tidemark.archive.folder import part_files
from tidemark.archive.manifest import ArchivedFile, ArchiveManifest, LeftOut, load_manifest
from tidemark.archive.parquet_file import BOUNDED, manifest_bounds
from tidemark.archive.progress import Progress, StepProgress, no_progress
from tidemark.backup.copy import hash_file

_ROWS_AT_ONCE = 1 << 20


class ArchiveFault(NamedTuple):
    """A fault that was found.

    reason  of a file: FILE_MISSING, FILE_SIZE, HASH, FILE_UNREADABLE, BOUNDS, ORDER or FILE_UNKNOWN; of a queue: ROWS;
            in a comparison with the store: DIFFERS or STORE_SHORTER
    """

    reason: str
    text: str
    path: str | None = None
    topic: str | None = None
    queue_id: int | None = None


class ArchiveVerification(NamedTuple):
    """Result of a verification. rows: number of messages counted."""

    manifest: ArchiveManifest
    findings: list[ArchiveFault]
    rows: int


def verify_archive(folder: Path, *, on_progress: Progress = no_progress) -> ArchiveVerification:
    """Read and check every file of the archive in *folder*.

    Raises FileNotFoundError if there is no archive, CorruptStoreError if its manifest is damaged.
    """
    manifest = load_manifest(folder)
    findings: list[ArchiveFault] = []
    rows: dict[tuple[str, int], int] = {}
    begin = StepProgress("verifying", total=len(manifest.files), all_messages=manifest.rows)
    on_progress(begin)
    for number, file in enumerate(manifest.files, start=1):
        flaw = _flaw_of_bytes(folder, file)
        if flaw is None:
            findings += _read(folder, file, rows)
        else:
            findings.append(flaw)
        on_progress(begin._replace(done=number, files=number, messages=sum(rows.values())))
    if not findings:  # faulty files would make the counts wrong
        findings += _miscounted(manifest, rows)
    named = {file.path for file in manifest.files}
    unknown = [str(path.relative_to(folder)) for path in part_files(folder)]
    findings += [
        ArchiveFault("FILE_UNKNOWN", "the file is not in the manifest; the next run removes it", path)
        for path in unknown
        if path not in named
    ]
    return ArchiveVerification(manifest, findings, sum(rows.values()))


def _flaw_of_bytes(folder: Path, file: ArchivedFile) -> ArchiveFault | None:
    path = folder / file.path
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return ArchiveFault("FILE_MISSING", "the file does not exist", file.path, file.topic)
    if size != file.size:
        return ArchiveFault("FILE_SIZE", f"the file has {size} bytes, expected {file.size}", file.path, file.topic)
    if hash_file(path, advance=lambda count: None) != file.sha256:
        return ArchiveFault("HASH", "the file's SHA-256 differs from the manifest", file.path, file.topic)
    return None


def _read(folder: Path, file: ArchivedFile, rows: dict[tuple[str, int], int]) -> Iterator[ArchiveFault]:
    """Yield a file's deviations from the manifest, and add its row counts by queue to *rows*."""
    bounds: dict[str, tuple[int, int]] = {}
    last = (-1, -1)
    try:
        with pq.ParquetFile(folder / file.path) as parquet:
            for batch in parquet.iter_batches(_ROWS_AT_ONCE, columns=list(BOUNDED)):
                places = {name: batch.column(name).cast(pa.int64()).to_numpy() for name in BOUNDED}
                for name, values in places.items():
                    least, greatest = bounds.get(name, (int(values.min()), int(values.max())))
                    bounds[name] = min(least, int(values.min())), max(greatest, int(values.max()))
                queues, offsets = places["queue_id"], places["queue_offset"]
                if not _ascends(last, queues, offsets):
                    yield ArchiveFault(
                        "ORDER", "the messages are not sorted by queue and queue offset", file.path, file.topic
                    )
                last = int(queues[-1]), int(offsets[-1])
                for queue_id, count in zip(*np.unique(queues, return_counts=True), strict=True):
                    rows[file.topic, int(queue_id)] = rows.get((file.topic, int(queue_id)), 0) + int(count)
            counted = parquet.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        yield ArchiveFault("FILE_UNREADABLE", str(error), file.path, file.topic)
        return
    said = {name: getattr(file, name) for name in manifest_bounds(dict.fromkeys(BOUNDED, (0, 0)))}
    if counted != file.rows or manifest_bounds(bounds) != said:
        yield ArchiveFault("BOUNDS", "the row count, offsets or times differ from the manifest", file.path, file.topic)


def _ascends(last: tuple[int, int], queues: NDArray[np.int64], offsets: NDArray[np.int64]) -> bool:
    """Return True if (queue, queue offset) increases with every row, starting after *last*."""
    queues, offsets = np.concatenate(([last[0]], queues)), np.concatenate(([last[1]], offsets))
    grows = (np.diff(queues) > 0) | ((np.diff(queues) == 0) & (np.diff(offsets) > 0))
    return bool(grows.all())


def _miscounted(manifest: ArchiveManifest, rows: dict[tuple[str, int], int]) -> Iterator[ArchiveFault]:
    """Yield the queues that do not have exactly one row per archived offset."""
    missing = _left_out(manifest.left_out)
    queues = manifest.by_queue()
    for place in sorted(queues.keys() | rows.keys()):
        queue, found = queues.get(place), rows.get(place, 0)
        expected = 0 if queue is None else queue.next - queue.first - missing.get(place, 0)
        if found != expected or (queue is not None and found != queue.rows):
            yield ArchiveFault("ROWS", f"the queue has {found} messages, expected {expected}", None, *place)


def _left_out(entries: tuple[LeftOut, ...]) -> dict[tuple[str, int], int]:
    missing: dict[tuple[str, int], int] = {}
    for one in entries:
        missing[one.topic, one.queue_id] = missing.get((one.topic, one.queue_id), 0) + one.next - one.first
    return missing
