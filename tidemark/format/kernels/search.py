"""memchr in compiled loops: compares a vector register of bytes at a time."""

from __future__ import annotations

from tidemark.format.kernels.bounds import require_within
from tidemark.format.kernels.compiled import compiled, machine


@compiled
def find_byte(buffer, byte, at, end):  # type: ignore[no-untyped-def]
    """Return the first position of *byte* in buffer[at:end]; *end* if it does not occur."""
    if at >= end:
        return end
    require_within(buffer, at, end)
    found = machine.find(buffer, byte, at, end - at)
    return found if found >= 0 else end
