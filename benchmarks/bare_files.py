"""Creates files as queues need them for their first units, with system calls only, to show their share of a build."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

FILE_BYTES = 6_000_000  # size of a ConsumeQueue file from its creation, mostly a hole
_UNIT_BYTES = 20
_MESSAGES = 200


def make_files(folder: Path, count: int) -> float:
    """Create *count* files with some units, each in its own folder, synced as for a durable mark; return the seconds.

    The time to remove the folder again does not count.
    """
    folder.mkdir()
    units = bytes(_UNIT_BYTES * _MESSAGES)
    try:
        begin = time.perf_counter()
        for number in range(count):
            _make_file(folder / str(number), units)
        _sync(folder)
        return time.perf_counter() - begin
    finally:
        shutil.rmtree(folder)


def _make_file(folder: Path, units: bytes) -> None:
    folder.mkdir()
    descriptor = os.open(folder / f"{0:020}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        os.ftruncate(descriptor, FILE_BYTES)
        os.pwrite(descriptor, units, 0)
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)
    _sync(folder)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
