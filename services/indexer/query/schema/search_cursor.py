"""Cursors of searches: opaque to clients, bound to the search they belong to."""

from __future__ import annotations

import base64
import struct
import zlib

from tidemark.errors import ArgumentIllegalError

_CURSOR = struct.Struct(">IqI")  # check, physical offset, element


def encode_cursor(search: str, physical_offset: int, element: int = 0) -> str:
    """Where a search goes on. *search* names it: what must be the same on the next page."""
    place = struct.pack(">qI", physical_offset, element)
    return base64.urlsafe_b64encode(struct.pack(">I", _check(search, place)) + place).decode().rstrip("=")


def decode_cursor(search: str, cursor: str) -> tuple[int, int]:
    """(physical offset, element); ArgumentIllegalError for what is no cursor of this search."""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        check, physical_offset, element = _CURSOR.unpack(raw)
    except (ValueError, struct.error):
        raise ArgumentIllegalError("this is no cursor", argument="cursor") from None
    if check != _check(search, raw[4:]):
        raise ArgumentIllegalError("this cursor belongs to another search", argument="cursor")
    return physical_offset, element


def _check(search: str, place: bytes) -> int:
    return zlib.crc32(place, zlib.crc32(search.encode()))
