"""Cursors of searches, opaque to clients. A cursor is valid only for the search that returned it."""

from __future__ import annotations

import base64
import struct
import zlib

from tidemark.errors import ArgumentIllegalError

_CURSOR = struct.Struct(">IqI")  # check, physical offset, element


def search_name(
    topic: str, key: str | None, unique_key: str | None, *, from_ms: int, to_ms: int, as_broker: bool = False
) -> str:
    """Return the parameters that the next page of a search must repeat, as text."""
    return f"{topic}\n{key}\n{unique_key}\n{from_ms}\n{to_ms}\n{as_broker}"


def encode_cursor(search: str, physical_offset: int, element: int = 0) -> str:
    """Return the cursor after the given place. search: as `search_name` returns it."""
    place = struct.pack(">qI", physical_offset, element)
    return base64.urlsafe_b64encode(struct.pack(">I", _check(search, place)) + place).decode().rstrip("=")


def decode_cursor(search: str, cursor: str) -> tuple[int, int]:
    """Return (physical offset, element).

    Raises:
        ArgumentIllegalError: the cursor is malformed or belongs to another search.
    """
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        check, physical_offset, element = _CURSOR.unpack(raw)
    except (ValueError, struct.error):
        raise ArgumentIllegalError("the cursor is malformed: send a page's next_cursor", argument="cursor") from None
    if check != _check(search, raw[4:]):
        raise ArgumentIllegalError(
            "the cursor belongs to another search: repeat the search that returned it", argument="cursor"
        )
    return physical_offset, element


def _check(search: str, place: bytes) -> int:
    return zlib.crc32(place, zlib.crc32(search.encode()))
