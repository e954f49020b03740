"""Compression of bodies before the send; readers decompress them (docs/format.md §2, §15)."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from tidemark.format.sys_flag import LZ4, ZLIB, ZSTD, SysFlag

_TYPES = {"lz4": LZ4, "zstd": ZSTD, "zlib": ZLIB}


@dataclass(frozen=True)
class Compression:
    """Compress bodies of at least *over_bytes*, if that makes them smaller.

    kind   zlib is part of Python; lz4 and zstd need pyarrow, and raise ImportError without it
    level  compression level of that kind

    Applies only to single sends to topics of single messages: batches are never compressed. Pulls as JSON and as Arrow
    return the original body; raw records stay compressed, and their sys_flag shows it.
    """

    over_bytes: int = 4096
    kind: Literal["zlib", "lz4", "zstd"] = "zlib"
    level: int = 5
    _compress: Callable[[bytes], bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compress", _compressor(self.kind, self.level))

    def apply(self, body: bytes) -> tuple[bytes, int]:
        """Return *body* as it is to be sent, and its bits of the sys_flag."""
        if len(body) >= self.over_bytes:
            smaller = self._compress(body)
            if len(smaller) < len(body):
                return smaller, int(SysFlag.COMPRESSED) | _TYPES[self.kind]
        return body, 0


def _compressor(kind: str, level: int) -> Callable[[bytes], bytes]:
    if kind not in _TYPES:
        raise ValueError(f"kind must be one of {', '.join(_TYPES)}, not {kind!r}")
    if kind == "zlib":
        return lambda body: zlib.compress(body, level)
    try:
        arrow = importlib.import_module("pyarrow")
    except ImportError as error:
        raise ImportError(f"compression by {kind} needs the package pyarrow", name="pyarrow") from error
    codec = arrow.Codec(kind, compression_level=level)
    return lambda body: bytes(codec.compress(body, asbytes=True))
