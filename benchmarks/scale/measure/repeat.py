"""What several parts do: runs and their medians, and a store's log and what is built of it."""

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
    """Each figure's median of so many runs."""
    runs = [measure() for _ in range(times)]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def committed_bytes(data: Path) -> int:
    """End of the log of the store at *data*, as its writer says."""
    reader = WatermarkReader(StorePaths(data))
    try:
        return reader.read().committed_offset
    finally:
        reader.close()


def forget_built(data: Path) -> None:
    """Remove what a pipeline has built of the stopped store at *data*, and its marks."""
    paths = StorePaths(data)
    for folder in (paths.consume_queue, paths.batch_consume_queue, paths.index, paths.indexer):
        shutil.rmtree(folder, ignore_errors=True)


def wait_until_visible(data: Path) -> None:
    """Until all that is committed now may be read; RuntimeError after two minutes."""
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
