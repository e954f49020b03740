"""A producer's batch body (docs/format.md §3), in compiled loops: checked completely, and written as records.

`elements` has its layout and the plain twin.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from tidemark.errors import BatchMalformedError, PropertiesSizeExceededError
from tidemark.format.dispatch_request import U8Array
from tidemark.format.elements import BODY_LENGTH_AT, ELEMENT_OVERHEAD, decode_elements, encode_elements
from tidemark.format.kernels import batch as kernel
from tidemark.format.kernels.properties import N_NAMES
from tidemark.format.primitives import MAX_PROPERTIES_SIZE_BYTES

_SIZE = struct.Struct(">i")
_KEY_OVERHEAD = 31  # separator before, UNIQ_KEY, U+0001, number sign, 19 digits, U+0002


class BatchFacts(NamedTuple):
    """Facts about a checked wire batch. Sizes in bytes; `*_at` element numbers are None if there is no such element."""

    count: int  # type: ignore[assignment]  # hides tuple's method: fields are read by name
    parts_size: int  # bodies and properties together
    max_element_parts: int  # the largest sum of body and properties of one element
    empty_body_at: int | None
    delay_at: int | None
    inner_at: int | None
    transaction_at: int | None
    waiting: int  # number of elements with WAIT=true
    not_waiting: int  # number of elements with another WAIT
    crc_at: int | None
    unique_key: bytes  # of the first element; b"" if it has none
    keys: bytes
    first_properties: bytes
    unfindable_at: int | None  # an element whose tag or key violates `text_rules`
    without_unique_key: int  # number of elements without a UNIQ_KEY


def scan(wire: bytes | U8Array) -> BatchFacts:
    """Check *wire* completely and return the facts that admission needs.

    Raises BatchMalformedError (fact: at, the byte where the malformed element starts).
    """
    buffer = np.frombuffer(wire, np.uint8) if isinstance(wire, bytes) else wire
    data = buffer.data
    if (plain := _facts_of_plain(data)) is not None:
        return plain
    result = np.empty(kernel.N_FACTS, np.int64)
    kernel.scan_batch(buffer, np.empty((N_NAMES, 2), np.int64), result)
    facts: list[int] = result.tolist()  # each access to an element of an array costs more than the whole loop
    if facts[kernel.FAULT]:
        at = facts[kernel.FAULT_AT]
        raise BatchMalformedError(f"the bytes are not a wire batch: byte {at} starts no valid element", at=at)
    first_properties = b""
    if facts[kernel.COUNT]:
        (size,) = _SIZE.unpack_from(data)
        first_properties = bytes(data[size - facts[kernel.FIRST_PROPERTIES_LENGTH] : size])
    return BatchFacts(
        facts[kernel.COUNT],
        facts[kernel.PARTS_SIZE],
        facts[kernel.MAX_ELEMENT_PARTS],
        _element(facts[kernel.EMPTY_BODY_AT]),
        _element(facts[kernel.DELAY_AT]),
        _element(facts[kernel.INNER_AT]),
        _element(facts[kernel.TRANSACTION_AT]),
        facts[kernel.WAITING],
        facts[kernel.NOT_WAITING],
        _element(facts[kernel.CRC_AT]),
        _text(data, facts[kernel.UNIQUE_KEY_AT], facts[kernel.UNIQUE_KEY_LENGTH]),
        _text(data, facts[kernel.KEYS_AT], facts[kernel.KEYS_LENGTH]),
        first_properties,
        _element(facts[kernel.UNFINDABLE_AT]),
        facts[kernel.WITHOUT_UNIQUE_KEY],
    )


def _facts_of_plain(data: memoryview) -> BatchFacts | None:
    """Return the facts of one element with a body and no properties; None for other data.

    The most frequent batch: without its arrays, a call of the compiled loop costs a fifth.
    """
    size = len(data)
    if size <= ELEMENT_OVERHEAD or _SIZE.unpack_from(data)[0] != size or data[-1] or data[-2]:
        return None
    (body_length,) = _SIZE.unpack_from(data, BODY_LENGTH_AT)
    if body_length != size - ELEMENT_OVERHEAD:
        return None
    return BatchFacts(1, body_length, body_length, None, None, None, None, 0, 0, None, b"", b"", b"", None, 1)


def _element(number: int) -> int | None:
    """Return the number of an element; None for -1, if there is no such element."""
    return None if number < 0 else number


def _text(data: memoryview, at: int, length: int) -> bytes:
    return bytes(data[at : at + length])


def add_unique_keys(wire: U8Array, count: int, first_key: bytes) -> U8Array:
    """Return a copy of a checked *wire* of *count* elements in which each element has a UNIQ_KEY.

    Element 0 gets *first_key* and element i gets ``first_key#i``, unless it has a key of its own. The result depends
    only on the arguments, so that the writer recognises a repeated batch.
    Raises PropertiesSizeExceededError (fact: at, an element number) if an element's properties have no room left.
    """
    out = np.empty(wire.size + count * (len(first_key) + _KEY_OVERHEAD), np.uint8)
    size, overlong_at = kernel.add_unique_keys(
        wire, np.frombuffer(first_key, np.uint8), np.empty((N_NAMES, 2), np.int64), out
    )
    if overlong_at >= 0:
        raise PropertiesSizeExceededError(
            f"the properties of message {overlong_at} of the batch are longer than {MAX_PROPERTIES_SIZE_BYTES:,} bytes "
            f"with the UNIQ_KEY that each message gets: shorten them by {len(first_key) + _KEY_OVERHEAD} bytes",
            at=int(overlong_at),
            limit=MAX_PROPERTIES_SIZE_BYTES,
        )
    return out[:size]


def unique_key_after(properties: bytes, unique_key: bytes) -> bytes:
    """Return the bytes to append to *properties* to add a UNIQ_KEY."""
    separator = b"\x02" if properties and not properties.endswith(b"\x02") else b""
    return separator + b"UNIQ_KEY\x01" + unique_key + b"\x02"


def remove_unique_keys(wire: bytes, first_key: bytes) -> bytes:
    """Return *wire* as before `add_unique_keys`: without the keys derived from *first_key*."""
    elements = []
    for number, element in enumerate(decode_elements(wire)):
        key = first_key + (b"#%d" % number if number else b"")
        elements.append(element._replace(properties=element.properties.removesuffix(b"UNIQ_KEY\x01" + key + b"\x02")))
    return encode_elements(elements)


def encode_records(
    wire: U8Array,
    *,
    head: U8Array,
    topic: U8Array,
    first_extra: U8Array,
    queue_offset: int,
    physical_offset: int,
    out: U8Array,
    positions: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> int:
    """Write a checked *wire* batch as records (legacy batch, docs/format.md §3) into *out*; return the bytes written.

    head         a record's head without size, CRC, flag, offsets and body length
    topic        topic length (1 byte for V1, 2 for V2) and topic
    first_extra  bytes appended to the first element's properties
    positions    int64, shape (count,): receives each record's physical offset
    """
    return int(kernel.encode_records(wire, head, topic, first_extra, queue_offset, physical_offset, out, positions))
