"""Bounds checks for loops that read by address, enabled with numba's own checks (NUMBA_BOUNDSCHECK=1)."""

from __future__ import annotations

from tidemark.format.kernels.compiled import compiled, machine

_IS_CHECKED = bool(machine and machine.BOUNDS_ARE_CHECKED)


@compiled(inline="always")
def require_within(buffer, at, end):  # type: ignore[no-untyped-def]
    """Raise IndexError unless buffer[at:end] exists. Compiles to nothing if the checks are disabled."""
    if _IS_CHECKED and not 0 <= at <= end <= buffer.size:
        raise IndexError("out of the buffer's bounds")
