"""Common functions of the parts: medians of runs, and access to a store's log and its built files."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from tidemark.read.watermark import WatermarkReader
from tidemark.store.paths import StorePaths

TIMES = 3
_TIMEOUT_S = 120.0
_POLL_S = 0.01


def medians(measure: Callable[[], dict[str, float]], times: int = TIMES) -> dict[str, float]:
    """Return each figure's median over *times* runs."""
    runs = [measure() for _ in range(times)]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def committed_bytes(data: Path) -> int:
    """Return the end of the log of the store at *data*, as its writer reports it."""
    reader = WatermarkReader(StorePaths(data))
    try:
        return reader.read().committed_offset
    finally:
        reader.close()


def forget_built(data: Path) -> None:
    """Delete the files that a pipeline has built for the stopped store at *data*, and its marks."""
    paths = StorePaths(data)
    for folder in (paths.consume_queue, paths.batch_consume_queue, paths.index, paths.indexer):
        shutil.rmtree(folder, ignore_errors=True)


def wait_until_visible(data: Path) -> None:
    """Block until all messages that are committed now are visible. Raises RuntimeError after two minutes."""
    reader = WatermarkReader(StorePaths(data))
    deadline = time.monotonic() + _TIMEOUT_S
    try:
        end = reader.read().committed_offset
        while reader.read().physical_offset < end:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{data} is not indexed after {_TIMEOUT_S:.0f} s")
            time.sleep(_POLL_S)
            reader.refresh()
    finally:
        reader.close()
