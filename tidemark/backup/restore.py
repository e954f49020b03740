"""Restoring of a backup into an empty folder. The format file marks it as unfinished until it is complete."""

from __future__ import annotations

import os
from pathlib import Path

from tidemark.backup.copy import Advance, copy_file
from tidemark.backup.manifest import BackedFile, BackupManifest, load_manifest
from tidemark.backup.take import Progress
from tidemark.errors import CorruptStoreError, StoreContradictionError
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.originals.format_file import say_unfinished
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage, replace_file


def restore_backup(
    folder: Path, paths: StorePaths, storage: Storage, *, on_progress: Progress = lambda done, total: None
) -> BackupManifest:
    """Restore the backup in *folder* to *paths*, and compare the hashes of all files.

    The log is whole up to the backup's end, which counts as committed; the next writer begins a new term there. The
    pipeline or `rebuild` builds queue files and index.

    Raises StoreContradictionError if the target is not empty, CorruptStoreError if a file's hash differs, and
    FileNotFoundError if no backup was finished.
    """
    manifest = load_manifest(folder)
    if paths.root.exists() and any(paths.root.iterdir()):
        raise StoreContradictionError(f"{paths.root} is not empty: restore into an empty folder", path=str(paths.root))
    storage.make_folder(paths.format_file.parent)
    say_unfinished(paths, storage)
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        on_progress(done, manifest.size)

    format_path = str(paths.format_file.relative_to(paths.root))
    of_format = [file for file in manifest.files if file.path == format_path]
    for file in manifest.files:
        if file not in of_format:
            _restore_file(folder, file, paths, storage, log_file_size=manifest.log_file_size, advance=advance)
    _say_committed(paths, manifest.end, storage)
    for file in of_format:  # last: this makes the folder a valid store
        _restore_file(folder, file, paths, storage, log_file_size=manifest.log_file_size, advance=advance)
    if not of_format:
        storage.unlink(paths.format_file)
    return manifest


def _restore_file(
    folder: Path, file: BackedFile, paths: StorePaths, storage: Storage, *, log_file_size: int, advance: Advance
) -> None:
    source = folder / file.stored
    is_log = file.path.startswith("commitlog/")
    descriptor = os.open(source, os.O_RDONLY)
    try:
        target = paths.root / file.path
        full_size = log_file_size if is_log else None
        digest = copy_file(descriptor, file.size, target, storage, full_size=full_size, advance=advance)
    finally:
        os.close(descriptor)
    if digest != file.sha256:
        raise CorruptStoreError(f"the SHA-256 of {source} differs from the manifest", path=str(source))


def _say_committed(paths: StorePaths, end: int, storage: Storage) -> None:
    """Mark everything as committed and closed cleanly, so that no part of the log counts as a torn tail."""
    checkpoint = Checkpoint.open_to_write(paths.checkpoint, storage)
    checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, end)
    checkpoint.flush()
    checkpoint.close()
    storage.make_folder(paths.writer)
    replace_file(storage, paths.writer / "clean", b"%d\n" % end, keep_previous=False)
