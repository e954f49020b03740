"""Calibration loops, which measure the machine's present speed at the operations that dominate the benchmarks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from isal import isal_zlib

_ROUND_S = 0.1
_ROUNDS = 9
_BLOCK_BYTES = 1 << 20
_MEMORY_BYTES = 64 << 20


def calibrate(folder: Path) -> dict[str, float]:
    """Return the rounds per second of each loop, the median of several runs; fdatasync is on *folder*'s file system."""
    source, target = np.ones(_MEMORY_BYTES, np.uint8), np.empty(_MEMORY_BYTES, np.uint8)
    block = bytes(_BLOCK_BYTES)
    path = folder / "calibration"
    with path.open("wb", buffering=0) as file:
        loops: dict[str, Callable[[], object]] = {
            "python": _python_loop,
            "memcpy": lambda: np.copyto(target, source),
            "crc": lambda: isal_zlib.crc32(block),
            "fdatasync": lambda: _write_and_sync(file.fileno()),
        }
        rates = {name: _median_rate(loop) for name, loop in loops.items()}
    path.unlink()
    return rates


def _median_rate(loop: Callable[[], object]) -> float:
    return float(np.median([_rate(loop) for _ in range(_ROUNDS)]))


def _rate(loop: Callable[[], object]) -> float:
    begin = now = time.perf_counter()
    rounds = 0
    while now - begin < _ROUND_S:
        loop()
        rounds += 1
        now = time.perf_counter()
    return rounds / (now - begin)


def _python_loop() -> dict[int, int]:
    """Run typical interpreter work: calls, integers and a dictionary."""
    counts: dict[int, int] = {}
    for number in range(2000):
        counts[number % 97] = counts.get(number % 97, 0) + hash((number, "calibration")) % 7
    return counts


def _write_and_sync(descriptor: int) -> None:
    os.pwrite(descriptor, bytes(4096), 0)
    os.fdatasync(descriptor)
