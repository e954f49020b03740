"""Wire batches (docs/format.md §3) in compiled loops: check a whole batch, and write it as records.

Twins: `tidemark.format.wire_batch`.
"""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels import properties as names
from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.copy import copy_bytes
from tidemark.format.kernels.crc import masked_crc32
from tidemark.format.kernels.integers import get_i2, get_i4, put_i2, put_i4, put_i8
from tidemark.format.kernels.json_text import put_number
from tidemark.format.kernels.positions import (
    BODY_CRC,
    BODY_LENGTH,
    ELEMENT_BODY,
    ELEMENT_BODY_LENGTH,
    ELEMENT_FLAG,
    ELEMENT_OVERHEAD,
    FLAG,
    HEAD_SIZE,
    PHYSICAL_OFFSET,
    QUEUE_OFFSET,
)
from tidemark.format.kernels.properties import is_java_true, scan_properties
from tidemark.format.primitives import MAX_PROPERTIES_SIZE_BYTES

(  # positions in the result of `scan_batch`
    COUNT,
    FAULT,
    FAULT_AT,
    PARTS_SIZE,
    MAX_ELEMENT_PARTS,
    EMPTY_BODY_AT,
    DELAY_AT,
    INNER_AT,
    TRANSACTION_AT,
    CRC_AT,
    UNFINDABLE_AT,
    WAITING,
    NOT_WAITING,
    UNIQUE_KEY_AT,
    UNIQUE_KEY_LENGTH,
    KEYS_AT,
    KEYS_LENGTH,
    FIRST_PROPERTIES_LENGTH,
    WITHOUT_UNIQUE_KEY,
) = range(19)
N_FACTS = 19
_UNIQ_KEY = np.frombuffer(b"UNIQ_KEY\x01", np.uint8)
_MAX_PROPERTIES = MAX_PROPERTIES_SIZE_BYTES
_BLANK, _NUMBER_SIGN, _STAR, _BAR = 32, 35, 42, 124


@compiled
def _has_no_control(wire, at, length):  # type: ignore[no-untyped-def]
    for i in range(at, at + length):
        if wire[i] < 32 or wire[i] == 127:
            return False
    return True


@compiled
def _is_findable_tag(wire, at, length):  # type: ignore[no-untyped-def]
    """Return True if a filter can name the tag: it is not *, has no || and no surrounding blanks."""
    if length == 0:
        return True
    if wire[at] == _BLANK or wire[at + length - 1] == _BLANK or (length == 1 and wire[at] == _STAR):
        return False
    for i in range(at, at + length - 1):
        if wire[i] == _BAR and wire[i + 1] == _BAR:
            return False
    return _has_no_control(wire, at, length)


@compiled
def scan_batch(wire, found, facts):  # type: ignore[no-untyped-def]
    """Check every element of *wire* and fill *facts* (int64). facts[FAULT] = 1 if it is not a wire batch.

    COUNT elements; FAULT_AT byte of the first malformed element; PARTS_SIZE: sum of body and properties bytes;
    MAX_ELEMENT_PARTS: the largest such sum; EMPTY_BODY_AT, DELAY_AT, INNER_AT: number of the first element without
    body, with a delay or timer property, with INNER_NUM, TRANSACTION_AT: with TRAN_MSG=true, CRC_AT: with __CRC32#,
    UNFINDABLE_AT: with a tag that no filter can name, or a control character in its keys (-1: none). WAITING,
    NOT_WAITING: number of elements whose WAIT is true, or another value; UNIQUE_KEY, KEYS, FIRST_PROPERTIES: of
    element 0. WITHOUT_UNIQUE_KEY: number of elements without a UNIQ_KEY.
    """
    facts[:] = 0
    facts[EMPTY_BODY_AT : UNFINDABLE_AT + 1] = -1
    at = 0
    end = wire.size
    count = 0
    while at < end:
        facts[FAULT_AT] = at
        facts[COUNT] = count
        facts[FAULT] = 1
        if end - at < ELEMENT_OVERHEAD:
            return
        size = get_i4(wire, at)
        if size < ELEMENT_OVERHEAD or size > end - at:
            return
        body_length = get_i4(wire, at + ELEMENT_BODY_LENGTH)
        if body_length < 0 or body_length > size - ELEMENT_OVERHEAD:
            return
        properties_at = at + ELEMENT_OVERHEAD + body_length
        properties_length = get_i2(wire, properties_at - 2)
        if properties_length < 0 or properties_at + properties_length != at + size:
            return
        facts[FAULT] = 0
        scan_properties(wire, properties_at, properties_at + properties_length, found)
        if count == 0:
            facts[UNIQUE_KEY_AT], facts[UNIQUE_KEY_LENGTH] = found[names.UNIQ_KEY, 0], found[names.UNIQ_KEY, 1]
            facts[KEYS_AT], facts[KEYS_LENGTH] = found[names.KEYS, 0], found[names.KEYS, 1]
            facts[FIRST_PROPERTIES_LENGTH] = properties_length
        if body_length == 0 and facts[EMPTY_BODY_AT] < 0:
            facts[EMPTY_BODY_AT] = count
        delay_at, delay_length = found[names.DELAY, 0], found[names.DELAY, 1]
        delayed = delay_length > 0 and not (delay_length == 1 and wire[delay_at] == 48)
        if (delayed or found[names.TIMER, 1] > 0) and facts[DELAY_AT] < 0:
            facts[DELAY_AT] = count
        if (found[names.INNER_NUM, 1] > 0 or found[names.MULTI_DISPATCH, 1] > 0) and facts[INNER_AT] < 0:
            facts[INNER_AT] = count
        if found[names.PROPERTY_CRC, 1] > 0 and facts[CRC_AT] < 0:
            facts[CRC_AT] = count
        if facts[TRANSACTION_AT] < 0 and is_java_true(wire, found[names.TRANSACTION, 0], found[names.TRANSACTION, 1]):
            facts[TRANSACTION_AT] = count
        wait_length = found[names.WAIT, 1]
        if wait_length > 0:
            facts[WAITING if is_java_true(wire, found[names.WAIT, 0], wait_length) else NOT_WAITING] += 1
        if facts[UNFINDABLE_AT] < 0 and not (
            _is_findable_tag(wire, found[names.TAGS, 0], found[names.TAGS, 1])
            and _has_no_control(wire, found[names.KEYS, 0], found[names.KEYS, 1])
        ):
            facts[UNFINDABLE_AT] = count
        if found[names.UNIQ_KEY, 1] == 0:
            facts[WITHOUT_UNIQUE_KEY] += 1
        facts[PARTS_SIZE] += body_length + properties_length
        facts[MAX_ELEMENT_PARTS] = max(facts[MAX_ELEMENT_PARTS], body_length + properties_length)
        count += 1
        at += size
    facts[COUNT] = count


@compiled
def encode_records(wire, head, topic, first_extra, queue_offset, physical_offset, out, positions):  # type: ignore[no-untyped-def]
    """Write the elements of a checked *wire* as records into *out*, and their physical offsets into *positions*.

    head         a record's head with everything but size, CRC, flag, offsets and body length filled in
    topic        its length (1 or 2 bytes) and its bytes
    first_extra  bytes to append to the first element's properties
    returns      bytes written
    """
    at = 0
    to = 0
    i = 0
    while at < wire.size:
        size = get_i4(wire, at)
        body_length = get_i4(wire, at + ELEMENT_BODY_LENGTH)
        properties_at = at + ELEMENT_OVERHEAD + body_length
        properties_length = size - ELEMENT_OVERHEAD - body_length
        extra = first_extra.size if i == 0 else 0
        total = head.size + body_length + topic.size + 2 + properties_length + extra
        copy_bytes(head, 0, head.size, out, to)
        put_i4(out, to, total)
        put_i4(out, to + BODY_CRC, masked_crc32(wire, at + ELEMENT_BODY, body_length))
        put_i4(out, to + FLAG, get_i4(wire, at + ELEMENT_FLAG))
        put_i8(out, to + QUEUE_OFFSET, queue_offset + i)
        put_i8(out, to + PHYSICAL_OFFSET, physical_offset + to)
        put_i4(out, to + BODY_LENGTH + head.size - HEAD_SIZE, body_length)
        position = to + head.size
        copy_bytes(wire, at + ELEMENT_BODY, body_length, out, position)
        position += body_length
        copy_bytes(topic, 0, topic.size, out, position)
        position += topic.size
        put_i2(out, position, properties_length + extra)
        position += 2
        copy_bytes(wire, properties_at, properties_length, out, position)
        position += properties_length
        if extra > 0:
            copy_bytes(first_extra, 0, extra, out, position)
        positions[i] = physical_offset + to
        to += total
        at += size
        i += 1
    return to


@compiled
def add_unique_keys(wire, first_key, found, out):  # type: ignore[no-untyped-def]
    """Copy a checked *wire* to *out* and append a UNIQ_KEY to the properties of each element that has none.

    first_key  the key of element 0; element i gets ``first_key#i``
    out        at least wire.size, and for each element first_key.size + 31 bytes
    returns    bytes written, and the number of the first element whose properties would become longer than 32,767
               bytes (-1: none)
    """
    at = 0
    to = 0
    i = 0
    while at < wire.size:
        size = get_i4(wire, at)
        body_length = get_i4(wire, at + ELEMENT_BODY_LENGTH)
        properties_at = at + ELEMENT_OVERHEAD + body_length
        copy_bytes(wire, at, size, out, to)
        end = to + size
        scan_properties(wire, properties_at, at + size, found)
        if found[names.UNIQ_KEY, 1] == 0:
            if properties_at < at + size and wire[at + size - 1] != names.PROPERTY_SEPARATOR:
                out[end] = names.PROPERTY_SEPARATOR
                end += 1
            copy_bytes(_UNIQ_KEY, 0, _UNIQ_KEY.size, out, end)
            end += _UNIQ_KEY.size
            copy_bytes(first_key, 0, first_key.size, out, end)
            end += first_key.size
            if i > 0:
                out[end] = _NUMBER_SIGN
                end = put_number(np.int64(i), out, end + 1)
            out[end] = names.PROPERTY_SEPARATOR
            end += 1
            properties_length = end - to - ELEMENT_OVERHEAD - body_length
            if properties_length > _MAX_PROPERTIES:
                return np.int64(0), np.int64(i)
            put_i4(out, to, end - to)
            put_i2(out, to + ELEMENT_OVERHEAD - 2 + body_length, properties_length)
        to = end
        at += size
        i += 1
    return np.int64(to), np.int64(-1)
