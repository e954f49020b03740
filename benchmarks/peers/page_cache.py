"""Takes a store's files out of the page cache, so that the next reader waits for the disk.

With POSIX_FADV_DONTNEED, file by file: nobody else's pages go. Pages that a process has mapped stay.
"""

from __future__ import annotations

import os
from pathlib import Path


def sync_files(store: Path) -> None:
    """What is not on the disk cannot be dropped."""
    for path in store.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def drop_page_cache(store: Path) -> None:
    """Of every file under *store*."""
    for path in store.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
