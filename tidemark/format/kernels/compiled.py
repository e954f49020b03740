"""`compiled`: numba's njit without the GIL, with a disk cache that depends on all sources of the loops.

numba itself checks only the file that contains the loop. If a loop calls one of another file, or reads a constant of
another module, it would keep running old machine code after a change of that file.
"""

from __future__ import annotations

import pkgutil
import zlib
from typing import Any

from numba import njit

import tidemark.format
import tidemark.format.kernels


def _checksum_of_sources() -> int:
    """Return the CRC-32 of all modules of `tidemark.format`, layouts and loops."""
    checksum = 0
    for package in (tidemark.format, tidemark.format.kernels):
        for found in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
            spec = found.module_finder.find_spec(found.name, None)
            source = spec.loader.get_source(found.name) if spec and spec.loader else None  # type: ignore[attr-defined]
            checksum = zlib.crc32(f"{found.name}\0{source}\0".encode(), checksum)
    return checksum


_SOURCES = _checksum_of_sources()


def compiled(function: Any = None, /, **options: Any) -> Any:
    """Decorate a loop; *options* are njit's."""
    if function is None:
        return lambda decorated: compiled(decorated, **options)
    dispatcher = njit(nogil=True, cache=True, **options)(function)
    cache = getattr(dispatcher, "_cache", None)  # None if numba is disabled
    if cache is not None:
        cache._cache_file._source_stamp = (cache._cache_file._source_stamp, _SOURCES)
    return dispatcher
