"""Simulated boots of the machine, which decide whether mapped numbers of an earlier life are valid.

The time of appends is simulated too, so that equal logs have equal bytes and need only one check.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

from tidemark.store import marks

FIRST, NEXT, LAST = "first-boot", "next-boot", "last-boot"
_NOW_NS = 1_700_000_000_123_000_000
_ASKING = ("tidemark.store.originals.terms", "tidemark.store.marks", "tidemark.read.watermark")


@contextmanager
def booted(boot_id: str) -> Iterator[None]:
    """Simulate that the machine is running in boot *boot_id*."""
    patches: list[Any] = [mock.patch(f"{module}.machine_boot_id", return_value=boot_id) for module in _ASKING]
    patches.append(
        mock.patch(
            "services.writer.log.log_tail.time", SimpleNamespace(time_ns=lambda: _NOW_NS, thread_time=lambda: 0.0)
        )
    )
    for patch in patches:
        patch.start()
    marks._boot_number.cache_clear()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()
        marks._boot_number.cache_clear()
