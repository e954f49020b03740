"""Verification of a backup: the hash of every file and every record of its log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tidemark.backup.copy import hash_file
from tidemark.backup.manifest import BackedFile, BackupManifest, load_manifest
from tidemark.backup.take import Progress
from tidemark.format.check import Checker, Crc, find_next_record
from tidemark.format.dispatch_request import Fault, Outcome

_LOG = "commitlog/"


class Flaw(NamedTuple):
    """A fault that was found. reason: FILE_MISSING, FILE_SIZE, HASH, LOG_GAP, or a record's reason as in the ledger."""

    reason: str
    text: str
    path: str
    physical_offset: int | None = None


class BackupVerification(NamedTuple):
    """Result of a verification."""

    manifest: BackupManifest
    flaws: list[Flaw]
    records: int


def verify_backup(folder: Path, *, on_progress: Progress = lambda done, total: None) -> BackupVerification:
    """Read and check the whole backup in *folder*.

    Raises FileNotFoundError if no backup was finished, CorruptStoreError if its manifest is damaged.
    """
    manifest = load_manifest(folder)
    flaws: list[Flaw] = []
    records = done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        on_progress(done, manifest.size)

    for file in manifest.files:
        path = folder / file.stored
        flaw = _flaw_of_file(path, file)
        if flaw is None and hash_file(path, advance=advance) != file.sha256:
            flaw = Flaw("HASH", "the file's SHA-256 differs from the manifest", file.stored)
        if flaw is not None:
            flaws.append(flaw)
        elif file.path.startswith(_LOG) and file.size:
            seen, found = _walk(path, file, manifest.log_file_size)
            records += seen
            flaws += found
    flaws += _gaps(manifest)
    return BackupVerification(manifest, flaws, records)


def _flaw_of_file(path: Path, file: BackedFile) -> Flaw | None:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return Flaw("FILE_MISSING", "the file does not exist", file.stored)
    if size != file.size:
        return Flaw("FILE_SIZE", f"the file has {size} bytes, expected {file.size}", file.stored)
    return None


def _gaps(manifest: BackupManifest) -> Iterator[Flaw]:
    """Yield the gaps between the log's files and before the end."""
    end = manifest.start
    for file in manifest.files:
        if file.path.startswith(_LOG):
            start = int(Path(file.path).name)
            if start != end:
                yield Flaw("LOG_GAP", f"the log continues at {start}, expected {end}", file.stored, end)
            end = start + file.size
    if end != manifest.end:
        yield Flaw("LOG_GAP", f"the log ends at {end}, expected {manifest.end}", "manifest.json", end)


def _walk(path: Path, file: BackedFile, log_file_size: int) -> tuple[int, list[Flaw]]:
    """Return the number of records and the faults of one log file."""
    buffer = np.asarray(np.memmap(path, np.uint8, "r"))
    base = int(Path(file.path).name)
    checker = Checker(crc=Crc.MARKS)
    flaws: list[Flaw] = []
    at = records = 0
    while True:
        result = checker.check(buffer, base_offset=base, start=at, file_end=log_file_size)
        records += result.records
        damaged = result.requests[result.requests["fault"] != Fault.NONE]
        flaws += [_damage(Fault(int(row["fault"])), int(row["physical_offset"]), file) for row in damaged]
        at = result.end_at
        if result.outcome in (Outcome.END, Outcome.BLANK):
            return records, flaws
        if result.outcome is not Outcome.FULL:
            fault = result.fault if result.outcome is Outcome.BAD else Fault.LENGTH
            flaws.append(_damage(fault, base + at, file))
            found = find_next_record(buffer, base_offset=base, start=at + 1, file_end=log_file_size)
            if found is None:
                return records, flaws
            at = found


def _damage(fault: Fault, physical_offset: int, file: BackedFile) -> Flaw:
    return Flaw(
        fault.name,
        "the record fails its check and was already damaged when it was copied",
        file.stored,
        physical_offset,
    )
