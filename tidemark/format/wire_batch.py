"""A producer's batch body (docs/format.md §3), in compiled loops: checked completely, and written as records.

`elements` has its layout and the plain twin.
"""

from __future__ import annotations

import enum
import struct
from typing import NamedTuple

import numpy as np

from tidemark.errors import BatchMalformedError, PropertiesSizeExceededError
from tidemark.format.dispatch_request import U8Array
from tidemark.format.elements import decode_elements, encode_elements
from tidemark.format.kernels import batch as kernel
from tidemark.format.kernels.properties import N_NAMES
from tidemark.format.primitives import MAX_PROPERTIES_SIZE_BYTES

_KEY_OVERHEAD = 31  # separator before, UNIQ_KEY, U+0001, number sign, 19 digits, U+0002


class Fact(enum.IntEnum):
    """Result fields of `scan`; -1 if the element of an `*_AT` does not exist."""

    COUNT = kernel.COUNT
    FAULT = kernel.FAULT
    FAULT_AT = kernel.FAULT_AT
    PARTS_SIZE = kernel.PARTS_SIZE
    MAX_ELEMENT_PARTS = kernel.MAX_ELEMENT_PARTS
    EMPTY_BODY_AT = kernel.EMPTY_BODY_AT
    DELAY_AT = kernel.DELAY_AT
    INNER_AT = kernel.INNER_AT
    TRANSACTION_AT = kernel.TRANSACTION_AT
    WAITING = kernel.WAITING
    NOT_WAITING = kernel.NOT_WAITING
    UNIQUE_KEY_AT = kernel.UNIQUE_KEY_AT
    UNIQUE_KEY_LENGTH = kernel.UNIQUE_KEY_LENGTH
    KEYS_AT = kernel.KEYS_AT
    KEYS_LENGTH = kernel.KEYS_LENGTH
    FIRST_PROPERTIES_LENGTH = kernel.FIRST_PROPERTIES_LENGTH
    CRC_AT = kernel.CRC_AT
    WITHOUT_UNIQUE_KEY = kernel.WITHOUT_UNIQUE_KEY
    UNFINDABLE_AT = kernel.UNFINDABLE_AT


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
    facts = np.empty(kernel.N_FACTS, np.int64)
    kernel.scan_batch(buffer, np.empty((N_NAMES, 2), np.int64), facts)
    if facts[Fact.FAULT]:
        raise BatchMalformedError(
            f"the bytes are not a wire batch: byte {facts[Fact.FAULT_AT]} starts no valid element",
            at=int(facts[Fact.FAULT_AT]),
        )

    def text(at: Fact, length: Fact) -> bytes:
        return buffer[facts[at] : facts[at] + facts[length]].tobytes()

    def number(fact: Fact) -> int | None:
        return None if facts[fact] < 0 else int(facts[fact])

    first_properties = b""
    if facts[Fact.COUNT]:
        first_length = int(facts[Fact.FIRST_PROPERTIES_LENGTH])
        (size,) = struct.unpack(">i", buffer[:4].tobytes())
        first_properties = buffer[size - first_length : size].tobytes()
    return BatchFacts(
        count=int(facts[Fact.COUNT]),
        parts_size=int(facts[Fact.PARTS_SIZE]),
        max_element_parts=int(facts[Fact.MAX_ELEMENT_PARTS]),
        empty_body_at=number(Fact.EMPTY_BODY_AT),
        delay_at=number(Fact.DELAY_AT),
        inner_at=number(Fact.INNER_AT),
        transaction_at=number(Fact.TRANSACTION_AT),
        waiting=int(facts[Fact.WAITING]),
        not_waiting=int(facts[Fact.NOT_WAITING]),
        crc_at=number(Fact.CRC_AT),
        unique_key=text(Fact.UNIQUE_KEY_AT, Fact.UNIQUE_KEY_LENGTH),
        keys=text(Fact.KEYS_AT, Fact.KEYS_LENGTH),
        first_properties=first_properties,
        unfindable_at=number(Fact.UNFINDABLE_AT),
        without_unique_key=int(facts[Fact.WITHOUT_UNIQUE_KEY]),
    )


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
