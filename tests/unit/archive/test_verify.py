"""Findings of verify-archive on archives that are each damaged in one way, without Spark."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.unit.archive.written import archive_of
from tidemark.archive.manifest import ArchiveManifest, LeftOut, save_manifest
from tidemark.archive.progress import StepProgress
from tidemark.archive.verify import verify_archive
from tidemark.store.storage import DiskStorage

OFFSETS = range(3, 53)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def twice(path: Path) -> None:
    path.with_name("part-2-00000-0.parquet").write_bytes(path.read_bytes())


@pytest.fixture
def manifest(tmp_path: Path) -> ArchiveManifest:
    return archive_of(tmp_path, "orders", OFFSETS)


def test_a_sound_archive_has_no_findings(tmp_path: Path, manifest: ArchiveManifest) -> None:
    """Every byte is read, and every row is counted."""
    told: list[StepProgress] = []
    verified = verify_archive(tmp_path, on_progress=told.append)
    assert (verified.findings, verified.rows, verified.manifest) == ([], len(OFFSETS), manifest)
    files, rows = len(manifest.files), len(OFFSETS)
    assert told[0] == StepProgress("verifying", total=files, all_messages=rows)
    assert told[-1] == StepProgress("verifying", files, files, rows, rows, files)


def test_verifying_needs_no_spark() -> None:
    """A run that finds nothing new does not need it either."""
    program = "import sys, tidemark.archive.verify, tidemark.archive.run; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("HASH", flip),
        ("FILE_MISSING", Path.unlink),
        ("FILE_SIZE", lambda path: path.write_bytes(path.read_bytes()[:-1])),
        ("FILE_UNKNOWN", twice),
    ],
)
def test_a_changed_archive_file_is_reported(
    tmp_path: Path, manifest: ArchiveManifest, reason: str, change: Callable[[Path], object]
) -> None:
    """The finding names the file."""
    path = tmp_path / manifest.files[0].path
    change(path)
    [finding] = verify_archive(tmp_path).findings
    assert finding.reason == reason
    assert finding.path is not None
    assert (tmp_path / finding.path).parent == path.parent


def test_an_invalid_parquet_file_is_refused(tmp_path: Path, manifest: ArchiveManifest) -> None:
    """The manifest agrees with the damaged file."""
    path = tmp_path / manifest.files[0].path
    path.write_bytes(b"PAR1, and nothing else")
    again(tmp_path, manifest)
    assert [finding.reason for finding in verify_archive(tmp_path).findings] == ["FILE_UNREADABLE"]


def again(folder: Path, manifest: ArchiveManifest, **changes: Any) -> None:
    """Save the manifest with the file's current size and hash, and other changes."""
    data = (folder / manifest.files[0].path).read_bytes()
    facts = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest(), **changes}
    files = (manifest.files[0].model_copy(update=facts),)
    save_manifest(folder, manifest.model_copy(update={"files": files}), DiskStorage())


@pytest.mark.parametrize("name", ["rows", "min_queue_offset", "max_physical_offset", "max_store_timestamp_ms"])
def test_wrong_row_counts_or_bounds_in_the_manifest_are_reported(
    tmp_path: Path, manifest: ArchiveManifest, name: str
) -> None:
    """The rows are counted in the file."""
    again(tmp_path, manifest, **{name: 7})
    assert [finding.reason for finding in verify_archive(tmp_path).findings] == ["BOUNDS"]


def test_rows_out_of_order_are_reported(tmp_path: Path, manifest: ArchiveManifest) -> None:
    """Readers may rely on the order."""
    path = tmp_path / manifest.files[0].path
    table = pq.ParquetFile(path).read()
    pq.write_table(table.sort_by([("queue_offset", "descending")]), path)
    again(tmp_path, manifest)
    assert [finding.reason for finding in verify_archive(tmp_path).findings] == ["ORDER"]


@pytest.mark.parametrize(
    ("following", "left_out", "reasons"),
    [(53, 0, []), (54, 0, ["ROWS"]), (52, 0, ["ROWS"]), (54, 1, []), (53, 1, ["ROWS"])],
)
def test_a_queue_needs_a_row_for_each_offset_that_was_not_excluded(
    tmp_path: Path, manifest: ArchiveManifest, following: int, left_out: int, reasons: list[str]
) -> None:
    queue = manifest.queues[0].model_copy(update={"next": following})
    left = LeftOut(topic="orders", queue_id=0, first=53, next=53 + left_out, reason="BODY_CRC")
    changed = manifest.model_copy(update={"queues": (queue,), "left_out": (left,)})
    save_manifest(tmp_path, changed, DiskStorage())
    assert [finding.reason for finding in verify_archive(tmp_path).findings] == reasons
