"""`compiled`: a loop's machine code, from the extension that wheels and images carry, else by numba.

The extension (`scripts/extension.py`) counts only if it was built from exactly these sources. numba compiles a loop at
its first call, without the GIL, into a cache on disk. That cache depends here on all sources too. numba itself checks
only the file that contains the loop, and if it calls one of another file, or reads a constant of another module, old
machine code would keep running after a change of that file.
"""

from __future__ import annotations

import importlib
import pkgutil
import zlib
from types import ModuleType
from typing import Any

import tidemark.format
import tidemark.format.kernels
from tidemark.format.kernels.crc_address import crc32_address

_NAME = "_tidemark_loops"  # top level, so that a folder on PYTHONPATH is enough to try a build

_NO_MACHINE_CODE = (
    "this installation has no machine code of the loops for this platform and version of Python; "
    "numba compiles them: pip install numba"
)


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


def _load_extension() -> ModuleType | None:
    """Return the extension, or None if there is none that was built from these sources."""
    try:
        found = importlib.import_module(_NAME)
    except ModuleNotFoundError:
        return None
    if found.sources() != _SOURCES:
        return None
    found.use_crc32(crc32_address())
    return found


def _load_machine() -> ModuleType:
    try:
        return importlib.import_module("tidemark.format.kernels.machine")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(_NO_MACHINE_CODE, name=error.name) from error


# Without numba's runtime, which counts references to arrays by atomic instructions: in small functions these took most
# of the time. So a loop allocates nothing, and assigns no array to a part of another one, for which numba may allocate.
WITH_NUMBAS_RUNTIME = False
_OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "_nrt": WITH_NUMBAS_RUNTIME}

extension = _load_extension()
machine: Any = None if extension else _load_machine()


def compiled(function: Any = None, /, **options: Any) -> Any:
    """Decorate a loop; *options* are njit's."""
    if function is None:
        return lambda decorated: compiled(decorated, **options)
    if extension is not None:
        return getattr(extension, name_in_extension(function), None) or _called_by_loops_alone(function)
    return _compiled_by_numba(function, options)


def name_in_extension(function: Any) -> str:
    """Return the name of a loop among those of all modules."""
    return f"{function.__module__.rpartition('.')[2]}_{function.__name__}"


def _called_by_loops_alone(function: Any) -> Any:
    """Return a function that only raises: the extension has a loop's parts within that loop."""

    def refuse(*args: Any) -> Any:
        raise RuntimeError(
            f"{name_in_extension(function)} is not among the extension's loops: scripts/warm.py calls those"
        )

    return refuse


def _compiled_by_numba(function: Any, options: dict[str, Any]) -> Any:
    from numba import njit

    dispatcher = njit(**_OPTIONS, **options)(function)
    cache = getattr(dispatcher, "_cache", None)  # None if numba is disabled
    if cache is not None:
        cache._cache_file._source_stamp = (cache._cache_file._source_stamp, _SOURCES)
    return dispatcher
