"""memchr in compiled loops: compares a vector register of bytes at a time."""

from __future__ import annotations

from numba import types

from tidemark.format.kernels.bounds import require_within
from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.crc import address

_memchr = types.ExternalFunction("memchr", types.uintp(types.uintp, types.int32, types.uintp))


@compiled
def find_byte(buffer, byte, at, end):  # type: ignore[no-untyped-def]
    """Return the first position of *byte* in buffer[at:end]; *end* if it does not occur."""
    if at >= end:
        return end
    require_within(buffer, at, end)
    start = address(buffer)  # type: ignore[call-arg, var-annotated]
    found = _memchr(start + types.uintp(at), types.int32(byte), types.uintp(end - at))
    return types.int64(found - start) if found != 0 else end
