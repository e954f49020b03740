"""Maps a file for random access, without read-ahead."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

from tidemark.format.dispatch_request import U8Array


def map_for_random_reads(path: Path) -> U8Array:
    """Map *path* read-only. A page that is not in memory costs a read of 4 KiB instead of 128 KiB."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    mapped.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(mapped, np.uint8)
