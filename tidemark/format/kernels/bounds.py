"""Bounds of loops that read by address, checked where numba checks its own (NUMBA_BOUNDSCHECK=1), and nowhere else."""

from __future__ import annotations

from numba import config

from tidemark.format.kernels.compiled import compiled

_IS_CHECKED = bool(config.BOUNDSCHECK)  # type: ignore[attr-defined]  # made when numba is loaded


@compiled(inline="always")
def require_within(buffer, at, end):  # type: ignore[no-untyped-def]
    """IndexError where buffer[at:end] is not all there. No machine code at all without the checks."""
    if _IS_CHECKED and not 0 <= at <= end <= buffer.size:
        raise IndexError("out of the buffer's bounds")
