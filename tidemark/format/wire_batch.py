"""The batch body producers send (spec 3.1), in compiled loops: checked whole, and written as records.

Its layout, and the plain twin that goes element by element, is `elements`.
"""

from __future__ import annotations

import enum
import struct
from typing import NamedTuple

import numpy as np

from tidemark.errors import BatchMalformedError
from tidemark.format.dispatch_request import U8Array
from tidemark.format.elements import ELEMENT_OVERHEAD
from tidemark.format.kernels import batch as kernel
from tidemark.format.kernels.properties import N_NAMES

assert ELEMENT_OVERHEAD == kernel.ELEMENT_OVERHEAD


class Fact(enum.IntEnum):
    """What `scan` tells of a wire batch; -1 where an `*_AT` element number does not exist."""

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


class BatchFacts(NamedTuple):
    """A checked wire batch. Sizes in bytes; `*_at` element numbers are None where there is no such element."""

    count: int  # type: ignore[assignment]  # not tuple's method: facts are read by name
    parts_size: int  # bodies and properties together
    max_element_parts: int  # the greatest body plus properties of one element
    empty_body_at: int | None
    delay_at: int | None
    inner_at: int | None
    transaction_at: int | None
    waiting: int  # number of elements with WAIT=true
    not_waiting: int  # number of elements with another WAIT
    crc_at: int | None
    unique_key: bytes  # of the first element; b"" when it has none
    keys: bytes
    first_properties: bytes


def scan(wire: bytes | U8Array) -> BatchFacts:
    """Check *wire* whole and tell what admission needs to know.

    raises BatchMalformedError (fact: at, the byte where the malformed element starts)
    """
    buffer = np.frombuffer(wire, np.uint8) if isinstance(wire, bytes) else wire
    facts = np.empty(kernel.N_FACTS, np.int64)
    kernel.scan_batch(buffer, np.empty((N_NAMES, 2), np.int64), facts)
    if facts[Fact.FAULT]:
        raise BatchMalformedError("these bytes are no wire batch", at=int(facts[Fact.FAULT_AT]))

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
    )


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
    """Write a checked *wire* batch as records (legacy batch, spec 3.3) into *out*; returns bytes written.

    head         a record's head with size, CRC, flag, offsets and body length left open
    topic        topic length (1 byte for V1, 2 for V2) and topic
    first_extra  bytes appended to the first element's properties
    positions    int64, shape (count,): receives each record's physical offset
    """
    return int(kernel.encode_records(wire, head, topic, first_extra, queue_offset, physical_offset, out, positions))
