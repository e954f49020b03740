"""Taking of a backup: sealed log files are copied once, everything else in each run.

    manifest.json              contents of the backup; written last
    commitlog/<start>          sealed files of the log
    runs/<time>/…              of the last run: the log's tail up to the end, and the small files
    lock                       held while a backup is taken

A run adds files and then replaces the manifest, so a run that is killed leaves the previous backup intact. The next run
removes files that no manifest names. Queue files, index, marks and ledger are not included: the log suffices for them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tidemark.backup.copy import copy_file, write_file
from tidemark.backup.manifest import BackedFile, BackupManifest, load_manifest, save_manifest
from tidemark.backup.moment import Moment, look_at
from tidemark.errors import ArgumentIllegalError, CorruptStoreError, StoreContradictionError
from tidemark.store.lock import FolderLock
from tidemark.store.mapped_file_queue import file_name
from tidemark.store.originals.format_file import require_known_format
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage

SEALED, RUNS = "commitlog", "runs"
_SAMPLE_SIZE = 4096
Progress = Callable[[int, int], None]  # (bytes copied, bytes to copy)


class BackupResult(NamedTuple):
    """Result of a backup. copied_bytes: of the log; kept_files: sealed files that the backup already had."""

    manifest: BackupManifest
    copied_files: int
    copied_bytes: int
    kept_files: int


def take_backup(
    paths: StorePaths,
    folder: Path,
    storage: Storage,
    *,
    store_name: str,
    on_progress: Progress = lambda done, total: None,
) -> BackupResult:
    """Back up the store at *paths* into *folder*, which is empty or has an earlier backup of this store.

    Raises StoreContradictionError if *folder* has another store's backup or a later one, StoreLockedError during
    another backup, StoreClosedError if the store must be recovered first, StoreTooNewError for a later format.
    """
    require_known_format(paths)
    if folder.resolve().is_relative_to(paths.root.resolve()):
        raise ArgumentIllegalError(f"{folder} is inside the store: choose a folder outside it", argument="destination")
    storage.make_folder(folder)
    lock = FolderLock(folder / "lock")
    try:
        lock.require()
        return _Backup(paths, folder, storage, on_progress).take(store_name)
    finally:
        lock.release()


class _Backup:
    """One run of a backup."""

    def __init__(self, paths: StorePaths, folder: Path, storage: Storage, on_progress: Progress) -> None:
        self._paths = paths
        self._folder = folder
        self._storage = storage
        self._on_progress = on_progress
        self._run = Path(RUNS) / f"{time.time_ns() // 1_000_000:013d}"
        self._previous = _previous(folder)
        self._copied_files = self._copied_bytes = self._kept_files = self._wanted_bytes = 0

    def take(self, store_name: str) -> BackupResult:
        _remove_unnamed(self._folder, self._previous)
        moment = look_at(self._paths)
        self._require_same_store(moment)
        files = self._back_up_log(moment)
        start = int(Path(files[0].path).name) if files else moment.start
        for path, data in sorted(moment.small_files.items()):
            stored = self._run / path
            digest = write_file(self._folder / stored, data, self._storage)
            files.append(BackedFile(path, str(stored), len(data), digest))
        manifest = BackupManifest(
            store_name, moment.term, start, moment.end, moment.log_file_size, time.time_ns() // 1_000_000, tuple(files)
        )
        save_manifest(self._folder, manifest, self._storage)
        _remove_unnamed(self._folder, manifest)
        return BackupResult(manifest, self._copied_files, self._copied_bytes, self._kept_files)

    def _require_same_store(self, moment: Moment) -> None:
        before = self._previous
        if before is not None and (before.log_file_size != moment.log_file_size or before.end > moment.end):
            raise StoreContradictionError(
                f"the backup in {self._folder} ends at {before.end}, after the store's end {moment.end}: "
                "it is of another store or a later state; choose another folder",
                path=str(self._folder),
            )

    def _back_up_log(self, moment: Moment) -> list[BackedFile]:
        """Back up all log files up to the end, except those that retention deletes meanwhile."""
        size = moment.log_file_size
        starts = range(moment.start, moment.end, size)
        known = {} if self._previous is None else self._previous.sealed()
        self._wanted_bytes = sum(
            min(size, moment.end - start) for start in starts if f"commitlog/{file_name(start)}" not in known
        )
        files: list[BackedFile] = []
        for start in starts:
            try:
                with _opened(self._paths.commit_log / file_name(start)) as descriptor:
                    files.append(self._back_up_file(descriptor, start, moment, known))
            except FileNotFoundError as error:
                if start + size >= moment.end:
                    raise CorruptStoreError(f"the log's last file does not exist: {error.filename}") from error
                files.clear()  # this file and all before it expired meanwhile
        return files

    def _back_up_file(self, descriptor: int, start: int, moment: Moment, known: dict[str, BackedFile]) -> BackedFile:
        path = f"commitlog/{file_name(start)}"
        size = min(moment.log_file_size, moment.end - start)
        is_sealed = size == moment.log_file_size
        if path in known and self._is_there(known[path]):
            self._require_same_bytes(descriptor, known[path])
            self._kept_files += 1
            return known[path]
        stored = Path(SEALED) / file_name(start) if is_sealed else self._run / path
        digest = copy_file(descriptor, size, self._folder / stored, self._storage, advance=self._advance)
        self._copied_files += 1
        return BackedFile(path, str(stored), size, digest, sealed=is_sealed)

    def _is_there(self, file: BackedFile) -> bool:
        """Return True if the backup still has the whole file; a lost or truncated one is copied again."""
        path = self._folder / file.stored
        return path.exists() and path.stat().st_size == file.size

    def _require_same_bytes(self, descriptor: int, file: BackedFile) -> None:
        """Require that a sealed file in the backup is this store's: its first and last bytes must agree."""
        with _opened(self._folder / file.stored) as there:
            for at in (0, file.size - _SAMPLE_SIZE):
                if os.pread(descriptor, _SAMPLE_SIZE, at) != os.pread(there, _SAMPLE_SIZE, at):
                    raise StoreContradictionError(
                        f"{file.path} differs from the file in the backup in {self._folder}: choose another folder",
                        path=str(self._folder / file.stored),
                    )

    def _advance(self, count: int) -> None:
        self._copied_bytes += count
        self._on_progress(self._copied_bytes, self._wanted_bytes)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _previous(folder: Path) -> BackupManifest | None:
    """Return the previous backup's manifest; None if it is missing or damaged, so that everything is copied again."""
    try:
        return load_manifest(folder)
    except (FileNotFoundError, CorruptStoreError):
        return None


def _remove_unnamed(folder: Path, manifest: BackupManifest | None) -> None:
    """Remove files of killed or older runs. Files that the manifest names are kept."""
    named = set() if manifest is None else {file.stored for file in manifest.files}
    for path in (folder / SEALED).glob("*"):
        if str(path.relative_to(folder)) not in named:
            path.unlink()
    for run in (folder / RUNS).glob("*"):
        if not any(stored.startswith(f"{run.relative_to(folder)}/") for stored in named):
            shutil.rmtree(run)
