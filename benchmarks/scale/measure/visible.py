"""Measures append to visible for a small message on a stack without other load."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.append_to_visible import measure as measure_visible
from benchmarks.stack import running
from benchmarks.stores import passing_store

RATE = 200.0
_WARM_S, _SECONDS = 3, 15


def measure(folder: Path) -> dict[str, float]:
    """Return the constant at 200 messages of 1 KiB per second, in flush mode sync."""
    with passing_store(folder / "visible") as data, running(data) as stack:
        measure_visible(stack.writer_address, stack.query_url, count=int(RATE * _WARM_S), rate=RATE)
        latencies = measure_visible(stack.writer_address, stack.query_url, count=int(RATE * _SECONDS), rate=RATE)
    return {"visible_s": float(np.percentile(latencies.visible, 50)) / 1000}
