"""An archive's folder.

    manifest.json                                  what the archive is; written last
    data/topic=…/day=YYYY-MM-DD/part-….parquet     the messages
    staging/<run>/topic=…/day=…/part-….parquet     files of a run that is not done: nothing in data/ is unverified
    lock                                           held while a run works

A run moves its files from staging/ to data/ and then replaces the manifest: killed anywhere, the archive before it is
untouched. What no manifest names is removed by the next run.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tidemark.archive.manifest import NAME, ArchivedFile, Manifest, load_manifest
from tidemark.errors import ArgumentIllegalError, StoreContradictionError
from tidemark.store.lock import FolderLock
from tidemark.store.storage import Storage

DATA, STAGING, LOCK = "data", "staging", "lock"
_PART = "part-*.parquet"
_FIRST_RUNS = {LOCK, f"{NAME}.tmp"}  # all that a run may leave that was killed before it wrote a manifest


@contextlib.contextmanager
def held_folder(folder: Path, *, outside: Path, storage: Storage) -> Iterator[None]:
    """The archive's folder, made when it is missing, for one run alone.

    raises ArgumentIllegalError for one inside of the store at *outside*; StoreLockedError while another run has it;
    StoreContradictionError for a folder that holds something else
    """
    if folder.resolve().is_relative_to(outside.resolve()):
        raise ArgumentIllegalError(f"{folder} lies in the store itself", argument="destination")
    if folder.exists() and not (folder / NAME).exists():
        foreign = {path.name for path in folder.iterdir()} - _FIRST_RUNS
        if foreign:
            raise StoreContradictionError(
                f"{folder} is not empty, and has no {NAME}: it is no archive", path=str(folder), found=min(foreign)
            )
    storage.make_folder(folder)
    lock = FolderLock(folder / LOCK)
    try:
        lock.require()
        yield
    finally:
        lock.release()


def archive_in(folder: Path) -> Manifest | None:
    """What is archived already; None in a new folder. CorruptStoreError, StoreTooNewError as `load_manifest`."""
    try:
        return load_manifest(folder)
    except FileNotFoundError:
        return None


def remove_unnamed(folder: Path, manifest: Manifest | None) -> int:
    """Remove what a run left that did not come to its end; how many files."""
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
    """All files of messages that lie there, named or not."""
    return sorted((folder / DATA).glob(f"topic=*/day=*/{_PART}"))


def new_run(folder: Path) -> tuple[str, Path]:
    """(name, staging folder) of a run that begins now."""
    name = f"{time.time_ns() // 1_000_000:013d}"
    return name, folder / STAGING / name


def publish(folder: Path, staging: Path, files: Iterable[ArchivedFile], storage: Storage) -> list[ArchivedFile]:
    """Move *files* to where a manifest names them, durably; they as they are there."""
    published = []
    for file in files:
        path = Path(DATA) / file.path
        storage.make_folder((folder / path).parent)
        storage.rename(staging / file.path, folder / path)
        published.append(file.model_copy(update={"path": str(path)}))
    return published
