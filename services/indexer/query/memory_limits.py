"""Memory settings of the process. Answers are buffers of megabytes that several threads make and soon free.

The buffers themselves come from `tidemark.read.buffers`.
"""

from __future__ import annotations

import gc

import pyarrow as pa

from tidemark.settings.malloc import limit_malloc

_GC_THRESHOLDS = 50_000, 20, 50  # an answer is thousands of dicts without cycles, so collect less often


def limit_memory() -> None:
    """Configure malloc, Arrow's pool and the garbage collector. Call it once, before threads start."""
    limit_malloc()
    pa.set_memory_pool(pa.system_memory_pool())
    gc.set_threshold(*_GC_THRESHOLDS)
