"""Drops a store's files from the page cache, so that the next reader waits for the disk.

It uses POSIX_FADV_DONTNEED on each file, so pages of other files remain. Pages that a process has mapped remain, too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO


def files_of(store: Path, *, least_bytes: int = 0) -> list[Path]:
    """Return the files below *store* of at least *least_bytes*; files that are deleted meanwhile are left out."""
    files = []
    for path in store.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_size >= least_bytes:
                files.append(path)
    return files


def sync_files(store: Path) -> None:
    """Sync the files of *store*, because unsynced pages cannot be dropped."""
    for file in _opened(files_of(store)):
        os.fsync(file.fileno())


def drop_page_cache(files: Iterable[Path]) -> None:
    """Drop the pages of *files*, which must be synced. `files_of` lists the files of a folder."""
    for file in _opened(files):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _opened(files: Iterable[Path]) -> Iterator[BinaryIO]:
    """Open the files one after the other, without those that were deleted since they were listed."""
    for path in files:
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            yield file
