from __future__ import annotations

import subprocess
import sys
import zlib

import pyarrow as pa
import pytest

from tidemark.format import compression
from tidemark.format.compression import MAX_DECOMPRESSED_BYTES, decompress
from tidemark.format.sys_flag import LZ4, UNTYPED, ZLIB, ZSTD

BODY = b"again and again " * 100


def compressed(kind: int, body: bytes = BODY) -> bytes:
    if kind in (LZ4, ZSTD):
        return bytes(pa.compress(body, codec="lz4" if kind == LZ4 else "zstd", asbytes=True))
    return zlib.compress(body)


@pytest.mark.parametrize("kind", [UNTYPED, ZLIB, LZ4, ZSTD])
def test_each_type_is_decompressed(kind: int) -> None:
    assert decompress(compressed(kind), kind | 0x1) == BODY


@pytest.mark.parametrize("kind", [UNTYPED, ZLIB, LZ4, ZSTD])
def test_damaged_data_is_none(kind: int) -> None:
    data = compressed(kind)
    assert decompress(data[:-5], kind) is None
    assert decompress(b"plain text", kind) is None


def test_an_unknown_type_is_none() -> None:
    assert decompress(compressed(ZLIB), 0x700) is None


@pytest.mark.parametrize("kind", [ZLIB, LZ4, ZSTD])
def test_data_that_expands_beyond_the_limit_is_none(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_DECOMPRESSED_BYTES == 64 << 20
    monkeypatch.setattr(compression, "MAX_DECOMPRESSED_BYTES", len(BODY))
    assert decompress(compressed(kind), kind) == BODY
    assert decompress(compressed(kind, BODY + b"x"), kind) is None


def test_arrow_is_imported_only_for_a_body_that_needs_it() -> None:
    program = """
import sys, zlib
from tidemark.format.compression import decompress
assert decompress(zlib.compress(b"x"), 0x300) == b"x"
assert not {"pyarrow", "numpy"} & set(sys.modules)
sys.modules["pyarrow"] = None
assert decompress(b"x", 0x200) is None
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
