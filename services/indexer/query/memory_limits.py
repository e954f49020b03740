"""Giving memory back: answers are buffers of megabytes that live for milliseconds, made on several threads.

What they are made in comes from `tidemark.read.buffers`.
"""

from __future__ import annotations

import gc

import pyarrow as pa

from tidemark.settings.malloc import limit_malloc

_GC_THRESHOLDS = 50_000, 20, 50  # an answer is thousands of dicts without a cycle


def limit_memory() -> None:
    """Settle malloc, Arrow's pool and the garbage collector. Once, before threads start."""
    limit_malloc()
    pa.set_memory_pool(pa.system_memory_pool())
    gc.set_threshold(*_GC_THRESHOLDS)
