"""Conversion of columns to wire batches (format.md §3) in compiled loops: choose queues, cut batches, write elements.

A column is its bytes and the start of each row's value (int64, one more than rows). Without offsets the column is
absent; a row with an empty value has none. Twins: `tidemark.format.pack`.
"""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.copy import copy_bytes
from tidemark.format.kernels.integers import put_i2, put_i4, put_i8
from tidemark.format.kernels.positions import ELEMENT_BODY, ELEMENT_BODY_LENGTH, ELEMENT_OVERHEAD
from tidemark.format.kernels.search import find_byte
from tidemark.format.kernels.text import text_hash
from tidemark.format.primitives import MAX_PROPERTIES_SIZE_BYTES

(  # reasons why a row cannot be packed
    NO_FAULT,
    SEPARATOR_FAULT,  # a tag or key contains U+0001 or U+0002, or a single key contains a space
    PROPERTIES_FAULT,  # properties too long for an i16
    BODY_FAULT,  # no body
) = range(4)
_MAX_PROPERTIES = MAX_PROPERTIES_SIZE_BYTES
_SPACE = 32
_TAGS = np.frombuffer(b"TAGS\x01", np.uint8)
_KEYS = np.frombuffer(b"KEYS\x01", np.uint8)
_UNIQ_KEY = np.frombuffer(b"UNIQ_KEY\x01", np.uint8)
_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)
MADE_DIGITS = 12  # digits of a generated key's number, after the common prefix of a batch


@compiled
def _length(offsets, row):  # type: ignore[no-untyped-def]
    return np.int64(0) if offsets.size == 0 else offsets[row + 1] - offsets[row]


@compiled
def _property_size(name, offsets, row):  # type: ignore[no-untyped-def]
    length = _length(offsets, row)
    return name.size + length + 1 if length > 0 else np.int64(0)


@compiled
def _is_clean(data, offsets, row, greatest):  # type: ignore[no-untyped-def]
    """Return True if a value contains no byte 1 or 2 (separators) and none from 32 to *greatest* (a space)."""
    if offsets.size == 0:
        return True
    at, end = offsets[row], offsets[row + 1]
    if find_byte(data, 1, at, end) < end or find_byte(data, 2, at, end) < end:
        return False
    return greatest < _SPACE or find_byte(data, _SPACE, at, end) == end


@compiled
def plan_rows(  # type: ignore[no-untyped-def]
    body_at,
    tag,
    tag_at,
    key,
    key_at,
    unique,
    unique_at,
    others_at,
    several_keys,
    made_length,
    queues,
    first_row,
    queue_of,
    size_of,
):
    """Fill *queue_of* (int64) and *size_of* (int64, element bytes) of every row; return the first bad (fault, row).

    The queue is |hashCode(key)| mod *queues*; rows without a key take turns by *first_row* + row. With *several_keys*
    spaces separate a row's keys, and the first one counts. A row without a unique key gets a generated one of
    *made_length* bytes (0: none).
    """
    greatest = 2 if several_keys else _SPACE
    for row in range(size_of.size):
        if not _is_clean(tag, tag_at, row, 2) or not _is_clean(unique, unique_at, row, 2):
            return SEPARATOR_FAULT, row
        if not _is_clean(key, key_at, row, greatest):
            return SEPARATOR_FAULT, row
        body_length = _length(body_at, row)
        if body_length == 0:
            return BODY_FAULT, row
        properties = _property_size(_TAGS, tag_at, row) + _property_size(_KEYS, key_at, row)
        properties += _length(others_at, row)
        if _length(unique_at, row) > 0:
            properties += _property_size(_UNIQ_KEY, unique_at, row)
        elif made_length > 0:
            properties += _UNIQ_KEY.size + made_length + 1
        if properties > _MAX_PROPERTIES:
            return PROPERTIES_FAULT, row
        size_of[row] = ELEMENT_OVERHEAD + body_length + properties
        key_length = _length(key_at, row)
        if key_length > 0:
            start = key_at[row]
            end = find_byte(key, _SPACE, start, start + key_length) if several_keys else start + key_length
            value = np.int64(np.int32(text_hash(key, start, end - start, np.uint32(0))))
            queue_of[row] = abs(value) % queues
        else:
            queue_of[row] = (first_row + row) % queues
    return NO_FAULT, np.int64(-1)


@compiled
def cut_batches(order, queue_of, size_of, max_count, max_bytes, ends):  # type: ignore[no-untyped-def]
    """Cut *order* (row numbers, grouped by queue) into batches of one queue each; return their number.

    ends  receives the end of each batch in *order*. A row larger than *max_bytes* is a batch of its own.
    """
    batches = 0
    count = 0
    size = np.int64(0)
    for i in range(order.size):
        row = order[i]
        full = count == max_count or size + size_of[row] > max_bytes
        if count > 0 and (full or queue_of[row] != queue_of[order[i - 1]]):
            ends[batches] = i
            batches += 1
            count = 0
            size = np.int64(0)
        count += 1
        size += size_of[row]
    if count > 0:
        ends[batches] = order.size
        batches += 1
    return batches


@compiled
def _put_bytes(out, to, data, at, length):  # type: ignore[no-untyped-def]
    copy_bytes(data, at, length, out, to)
    return to + length


@compiled
def _put_property(out, to, name, data, offsets, row):  # type: ignore[no-untyped-def]
    length = _length(offsets, row)
    if length == 0:
        return to
    to = _put_bytes(out, to, name, 0, name.size)
    to = _put_bytes(out, to, data, offsets[row], length)
    out[to] = 2
    return to + 1


@compiled
def _put_made_key(out, to, made_head, number):  # type: ignore[no-untyped-def]
    """Write a UNIQ_KEY of *made_head* and *number* in hex digits; return the position after it."""
    to = _put_bytes(out, to, _UNIQ_KEY, 0, _UNIQ_KEY.size)
    to = _put_bytes(out, to, made_head, 0, made_head.size)
    for digit in range(MADE_DIGITS):
        out[to + digit] = _HEX[(number >> (4 * (MADE_DIGITS - 1 - digit))) & 15]
    out[to + MADE_DIGITS] = 2
    return to + MADE_DIGITS + 1


@compiled
def pack_elements(  # type: ignore[no-untyped-def]
    rows, body, body_at, tag, tag_at, key, key_at, unique, unique_at, others, others_at, made_head, made_first, out
):
    """Write *rows* (row numbers) as elements into *out*; return the number of bytes written.

    Properties: TAGS, KEYS, UNIQ_KEY, and the others, already encoded. made_head, made_first: an element at position i
    without a unique key gets *made_head* and the number *made_first* + i; an empty *made_head*: none.
    """
    to = 0
    for i in range(rows.size):
        row = rows[i]
        start = to
        length = body_at[row + 1] - body_at[row]
        put_i8(out, start, 0)
        put_i8(out, start + 8, 0)
        put_i4(out, start + ELEMENT_BODY_LENGTH, length)
        to = _put_bytes(out, start + ELEMENT_BODY, body, body_at[row], length) + 2
        properties_at = to
        to = _put_property(out, to, _TAGS, tag, tag_at, row)
        to = _put_property(out, to, _KEYS, key, key_at, row)
        if made_head.size > 0 and _length(unique_at, row) == 0:
            to = _put_made_key(out, to, made_head, made_first + i)
        else:
            to = _put_property(out, to, _UNIQ_KEY, unique, unique_at, row)
        length = _length(others_at, row)
        if length > 0:
            to = _put_bytes(out, to, others, others_at[row], length)
        put_i2(out, properties_at - 2, to - properties_at)
        put_i4(out, start, to - start)
    return to
