"""Measures the disk: syncs, sequential writes and reads, and random reads."""

from __future__ import annotations

import os
import random
import statistics
import time
from pathlib import Path

from benchmarks.page_cache import drop_page_cache

_BYTES = 1 << 29
_BLOCK = bytes(8 << 20)
_PAGE = 4096
_SYNCS, _READS = 200, 400


def measure(folder: Path) -> dict[str, float]:
    """Return the constants of *folder*'s file system."""
    path = folder / "disk"
    try:
        written = _write(path)
        path_of_syncs = folder / "syncs"
        synced = _sync(path_of_syncs)
        path_of_syncs.unlink()
        drop_page_cache([path])
        read = _read(path)
        drop_page_cache([path])
        return {
            "disk_write_bytes_a_s": written,
            "fdatasync_s": synced,
            "disk_read_bytes_a_s": read,
            "disk_read_s": _read_anywhere(path),
        }
    finally:
        path.unlink(missing_ok=True)


def _write(path: Path) -> float:
    """Return the B/s of sequential writes with a sync after each block, as under load."""
    with path.open("wb", buffering=0) as file:
        began = time.perf_counter()
        for _ in range(_BYTES // len(_BLOCK)):
            file.write(_BLOCK)
            os.fdatasync(file.fileno())
        return _BYTES / (time.perf_counter() - began)


def _sync(path: Path) -> float:
    times = []
    with path.open("wb", buffering=0) as file:
        file.truncate(_SYNCS * _PAGE)
        for _ in range(_SYNCS):
            file.write(bytes(_PAGE))
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def _read(path: Path) -> float:
    with path.open("rb", buffering=0) as file:
        began = time.perf_counter()
        buffer = bytearray(len(_BLOCK))
        while file.readinto(buffer):
            pass
        return _BYTES / (time.perf_counter() - began)


def _read_anywhere(path: Path) -> float:
    times = []
    draw = random.Random(0)
    with path.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for _ in range(_READS):
            at = draw.randrange(_BYTES // _PAGE) * _PAGE
            began = time.perf_counter()
            os.pread(file.fileno(), _PAGE, at)
            times.append(time.perf_counter() - began)
    return statistics.median(times)
