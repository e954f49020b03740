"""Frames made from their parts by section 2 of the protocol, independent of the code under test."""

from __future__ import annotations

import struct


def frame_bytes(header: bytes, body: bytes = b"", serialization: int = 0) -> bytes:
    """Return length, mark, *header* and *body*."""
    mark = serialization << 24 | len(header)
    return struct.pack(">iI", 4 + len(header) + len(body), mark) + header + body


def binary_header_bytes(
    code: int, language: int, version: int, opaque: int, flag: int, remark: bytes, *fields: tuple[bytes, bytes]
) -> bytes:
    """Return a header in the binary form."""
    packed = b"".join(
        struct.pack(">h", len(key)) + key + struct.pack(">i", len(value)) + value for key, value in fields
    )
    head = struct.pack(">hBhiii", code, language, version, opaque, flag, len(remark))
    return head + remark + struct.pack(">i", len(packed)) + packed
