"""Decompression of message bodies (docs/format.md §2). Does not import pyarrow before a body needs it."""

from __future__ import annotations

import zlib

from tidemark.format.sys_flag import LZ4, UNTYPED, ZLIB, ZSTD, SysFlag

MAX_DECOMPRESSED_BYTES = 64 << 20
_TYPE = int(SysFlag.COMPRESSION_TYPE)


def decompress(body: bytes, sys_flag: int) -> bytes | None:
    """Return the original body.

    None if the type is unknown, the data is damaged, it exceeds 64 MiB, or LZ4 or ZSTD is used without pyarrow.
    """
    kind = sys_flag & _TYPE
    try:
        if kind in (ZLIB, UNTYPED):
            inflater = zlib.decompressobj()
            original = inflater.decompress(body, MAX_DECOMPRESSED_BYTES)
            return original if inflater.eof else None
        if kind in (LZ4, ZSTD):
            import pyarrow as pa

            with pa.CompressedInputStream(pa.BufferReader(body), "lz4" if kind == LZ4 else "zstd") as stream:
                original = stream.read(MAX_DECOMPRESSED_BYTES + 1)
            return original if len(original) <= MAX_DECOMPRESSED_BYTES else None
    except (zlib.error, OSError, ImportError):
        pass
    return None
