"""CRC-32 in compiled loops."""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels.bounds import require_within
from tidemark.format.kernels.compiled import compiled, machine


@compiled
def masked_crc32(buffer, at, length):  # type: ignore[no-untyped-def]
    """Return the CRC-32 of buffer[at:at+length] without its highest bit; 0 if it is empty."""
    require_within(buffer, at, at + length)
    return np.int32(machine.crc32(buffer, at, length) & np.uint32(0x7FFFFFFF))
