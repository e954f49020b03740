"""Files of an archive's folder.

    manifest.json                                  contents of the archive; written last
    data/topic=…/day=YYYY-MM-DD/part-….parquet     the messages
    staging/<run>/topic=…/day=…/part-….parquet     files of an unfinished run, so that data/ has only verified files
    lock                                           held during a run

A run moves its files from staging/ to data/ and then replaces the manifest, so a run that is killed leaves the previous
archive intact. The next run removes files that no manifest names.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tidemark.archive.manifest import NAME, ArchivedFile, ArchiveManifest, load_manifest
from tidemark.errors import ArgumentIllegalError, StoreContradictionError
from tidemark.store.lock import FolderLock
from tidemark.store.storage import Storage

DATA, STAGING, LOCK = "data", "staging", "lock"
_PART = "part-*.parquet"
_FIRST_RUNS = {LOCK, f"{NAME}.tmp"}  # files left by a run that was killed before the first manifest


@contextlib.contextmanager
def held_folder(folder: Path, *, outside: Path, storage: Storage) -> Iterator[None]:
    """Create the archive's folder if needed and hold its lock during the `with` block.

    Raises ArgumentIllegalError if it is inside the store at *outside*, StoreLockedError during another run, and
    StoreContradictionError if the folder contains other files.
    """
    if folder.resolve().is_relative_to(outside.resolve()):
        raise ArgumentIllegalError(f"{folder} is inside the store: choose a folder outside it", argument="destination")
    if folder.exists() and not (folder / NAME).exists():
        foreign = {path.name for path in folder.iterdir()} - _FIRST_RUNS
        if foreign:
            raise StoreContradictionError(
                f"{folder} is not an archive: it is not empty and has no {NAME}", path=str(folder), found=min(foreign)
            )
    storage.make_folder(folder)
    lock = FolderLock(folder / LOCK)
    try:
        lock.require()
        yield
    finally:
        lock.release()


def archive_in(folder: Path) -> ArchiveManifest | None:
    """Return the manifest; None in a new folder. Raises CorruptStoreError or StoreTooNewError like `load_manifest`."""
    try:
        return load_manifest(folder)
    except FileNotFoundError:
        return None


def remove_unnamed(folder: Path, manifest: ArchiveManifest | None) -> int:
    """Remove the files of unfinished runs and return their number."""
    named = set() if manifest is None else {file.path for file in manifest.files}
    left = [path for path in (folder / STAGING).rglob(_PART) if path.is_file()]
    shutil.rmtree(folder / STAGING, ignore_errors=True)
    unnamed = [path for path in part_files(folder) if str(path.relative_to(folder)) not in named]
    for path in unnamed:
        path.unlink()
        with contextlib.suppress(OSError):  # not empty
            path.parent.rmdir()
            path.parent.parent.rmdir()
    return len(left) + len(unnamed)


def part_files(folder: Path) -> list[Path]:
    """Return all message files in the folder, whether or not a manifest names them."""
    return sorted((folder / DATA).glob(f"topic=*/day=*/{_PART}"))


def new_run(folder: Path) -> tuple[str, Path]:
    """Return the name and staging folder of a new run."""
    name = f"{time.time_ns() // 1_000_000:013d}"
    return name, folder / STAGING / name


def publish(folder: Path, staging: Path, files: Iterable[ArchivedFile], storage: Storage) -> list[ArchivedFile]:
    """Move *files* durably to their final folder and return them with their new paths."""
    published = []
    for file in files:
        path = Path(DATA) / file.path
        storage.make_folder((folder / path).parent)
        storage.rename(staging / file.path, folder / path)
        published.append(file.model_copy(update={"path": str(path)}))
    return published
