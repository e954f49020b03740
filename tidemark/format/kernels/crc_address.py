"""Where ISA-L's CRC-32 is: about 11 GB/s per core, three times zlib."""

from __future__ import annotations

import ctypes

import isal.isal_zlib


def crc32_address() -> int:
    """Return the address of `crc32_gzip_refl(initial, bytes, length)`."""
    library = ctypes.CDLL(isal.isal_zlib.__file__)
    return ctypes.cast(library.crc32_gzip_refl, ctypes.c_void_p).value or 0
