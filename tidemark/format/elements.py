"""Elements of a producer's batch body (docs/format.md §3), one by one: consecutive, without count or padding.

i32 size · i32 0 · i32 0 · i32 flag · i32 body length · body · i16 properties length · properties

The plain twin of `wire_batch`'s compiled loops. Clients need only this module, so it does not import numpy.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidemark.errors import BatchMalformedError

ELEMENT_HEAD = struct.Struct(">iiiii")  # size, magic 0, body CRC 0, flag, body length
FLAG_AT, BODY_LENGTH_AT = 12, 16  # positions in the head
ELEMENT_OVERHEAD = ELEMENT_HEAD.size + 2
assert ELEMENT_OVERHEAD == 22
_PROPERTIES_LENGTH = struct.Struct(">h")


Parts = tuple[bytes, bytes, int]  # body, properties, flag


class Element(NamedTuple):
    """One message of a wire batch. properties: the raw string."""

    body: bytes
    properties: bytes = b""
    flag: int = 0


def encode_elements(elements: Iterable[Parts]) -> bytes:
    """Return the wire batch of *elements*."""
    parts: list[bytes] = []
    last, head, properties_length = (-1, -1, 0), b"", b""
    for body, properties, flag in elements:
        shape = len(body), len(properties), flag
        if shape != last:  # the elements of a batch often have one shape
            body_size, properties_size, _ = last = shape
            head = ELEMENT_HEAD.pack(ELEMENT_OVERHEAD + body_size + properties_size, 0, 0, flag, body_size)
            properties_length = _PROPERTIES_LENGTH.pack(properties_size)
        parts += (head, body, properties_length, properties)
    return b"".join(parts)


def encode_plain_element(body: bytes) -> bytes:
    """Return the wire batch of one element with neither properties nor a flag."""
    size = len(body)
    return ELEMENT_HEAD.pack(ELEMENT_OVERHEAD + size, 0, 0, 0, size) + body + b"\0\0"


def decode_elements(wire: bytes | memoryview) -> Iterator[Element]:
    """Yield the elements of *wire*.

    Raises BatchMalformedError (fact: at, a byte) at the first invalid element.
    """
    raw = memoryview(wire)
    at = 0
    while at < len(raw):
        if len(raw) - at < ELEMENT_OVERHEAD:
            raise BatchMalformedError("the batch ends within an element's head", at=at)
        size, _, _, flag, body_length = ELEMENT_HEAD.unpack_from(raw, at)
        body_at = at + ELEMENT_HEAD.size
        if not 0 <= body_length <= size - ELEMENT_OVERHEAD or size > len(raw) - at:
            raise BatchMalformedError("an element's body or size exceeds the batch", at=at)
        properties_at = body_at + body_length + 2
        (properties_length,) = _PROPERTIES_LENGTH.unpack_from(raw, properties_at - 2)
        if properties_length < 0 or properties_at + properties_length != at + size:
            raise BatchMalformedError("an element's size is not the sum of its parts", at=at)
        body = bytes(raw[body_at : body_at + body_length])
        yield Element(body, bytes(raw[properties_at : at + size]), flag)
        at += size
