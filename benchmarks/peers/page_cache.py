"""Takes a store's files out of the page cache, so that the next reader waits for the disk."""

from __future__ import annotations

import os
from pathlib import Path


def drop_page_cache(store: Path) -> str:
    """Of every file under *store*, which no process may map (mapped pages stay); what was done, in a few words."""
    for path in store.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
    return "fsync and POSIX_FADV_DONTNEED on every file"
