"""Takes a store's files out of the page cache, so that the next reader waits for the disk.

With POSIX_FADV_DONTNEED, file by file: nobody else's pages go. Pages that a process has mapped stay.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO


def files_of(store: Path, *, least_bytes: int = 0) -> list[Path]:
    """All files under *store* of at least so many bytes; without those that a living store deletes meanwhile."""
    files = []
    for path in store.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_size >= least_bytes:
                files.append(path)
    return files


def sync_files(store: Path) -> None:
    """What is not on the disk cannot be dropped."""
    for file in _opened(files_of(store)):
        os.fsync(file.fileno())


def drop_page_cache(files: Iterable[Path]) -> None:
    """Of *files*, which are all on the disk; those of a folder: `files_of`."""
    for file in _opened(files):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _opened(files: Iterable[Path]) -> Iterator[BinaryIO]:
    """One after the other, without those that were deleted since they were listed."""
    for path in files:
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            yield file
