"""Hash and checksum of all layouts (docs/format.md §1), and limits of the format (docs/format.md §15)."""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Sequence
from operator import mul

MAX_MESSAGE_SIZE_BYTES = 4_194_304  # maxMessageSize, for one body and for a whole wire batch
MAX_PROPERTIES_SIZE_BYTES = 32_767  # an i16
MAX_TOPIC_SIZE_BYTES = 127
MAX_RETRY_TOPIC_SIZE_BYTES = 255
MAX_INNER_BATCH_COUNT = 32_767  # INNER_NUM is parsed as an i16

_UTF_16 = f"utf-16-{sys.byteorder[0]}e"
_POWERS = tuple(pow(31, exponent, 1 << 32) for exponent in reversed(range(64)))


def java_hash(text: str) -> int:
    """Return String.hashCode() of *text*: over UTF-16 units, as a signed 32-bit integer."""
    try:
        units: Sequence[int] = text.encode("latin-1")
    except UnicodeEncodeError:
        units = array("H", text.encode(_UTF_16, "surrogatepass"))
    value = 0
    for at in range(0, len(units), len(_POWERS)):
        piece = units[at : at + len(_POWERS)]
        value = (value * pow(31, len(piece), 1 << 32) + sum(map(mul, piece, _POWERS[-len(piece) :]))) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def queue_of_key(key: str, queues: int) -> int:
    """Return the queue for messages of *key*: |hashCode| mod queues (docs/format.md §15)."""
    return abs(java_hash(key)) % queues


def java_abs(value: int) -> int:
    """Return Math.abs of a signed 32-bit integer: the minimum stays negative."""
    return value if value == -(1 << 31) else abs(value)


def masked_crc32(data: bytes | bytearray | memoryview) -> int:
    """Return the CRC-32 without its highest bit, as RocketMQ stores it; 0 for empty data."""
    return zlib.crc32(data) & 0x7FFFFFFF


def utf16_length(text: str) -> int:
    """Return Java's String.length(): the number of UTF-16 units."""
    return len(text.encode("utf-16-be", "surrogatepass")) // 2
