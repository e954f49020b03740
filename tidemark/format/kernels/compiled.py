"""`compiled`: numba's njit without the GIL, its machine code cached on disk under every source it may come from.

numba itself looks only at the file a loop stands in: a loop that calls one of another file, or reads a constant of
another module, would go on running the old machine code after that other file has changed.
"""

from __future__ import annotations

import pkgutil
import zlib
from typing import Any

from numba import njit

import tidemark.format
import tidemark.format.kernels


def _checksum_of_sources() -> int:
    """CRC-32 over all modules of `tidemark.format`, layouts and loops."""
    checksum = 0
    for package in (tidemark.format, tidemark.format.kernels):
        for found in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
            spec = found.module_finder.find_spec(found.name, None)
            source = spec.loader.get_source(found.name) if spec and spec.loader else None  # type: ignore[attr-defined]
            checksum = zlib.crc32(f"{found.name}\0{source}\0".encode(), checksum)
    return checksum


_SOURCES = _checksum_of_sources()


def compiled(function: Any = None, /, **options: Any) -> Any:
    """Decorates a loop; *options* are njit's."""
    if function is None:
        return lambda decorated: compiled(decorated, **options)
    dispatcher = njit(nogil=True, cache=True, **options)(function)
    cache = getattr(dispatcher, "_cache", None)  # none when numba is told not to compile
    if cache is not None:
        cache._cache_file._source_stamp = (cache._cache_file._source_stamp, _SOURCES)
    return dispatcher
