"""Columns of messages: numbers, and fields of variable length as Arrow has them, a tile of messages at a time.

A tile is small enough for the processor's cache, so that each byte of the records comes from memory once.
"""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.copy import copy_bytes
from tidemark.format.kernels.integers import get_i4, get_i8
from tidemark.format.kernels.messages import (
    check_record,
    fill_messages,
    put_entries,
    put_hex,
    put_offset,
    record_size,
)
from tidemark.format.kernels.positions import PHYSICAL_OFFSET, SYS_FLAG
from tidemark.format.sys_flag import INNER_BATCH_FLAGS, SysFlag

# Fields of variable length. PROPERTIES: of messages with others than TAGS, KEYS and UNIQ_KEY, otherwise empty.
BORN_HOSTS, STORE_HOSTS, TAGS, KEYS, UNIQUE_KEYS, PROPERTIES, BODIES = range(7)
N_FIELDS = 7
COMPRESSED, ELEMENTS = 7, 8  # after the fields, in the sums of `measure`: numbers of messages
N_SUMS = 9
TILE = 64  # messages
ALL_DONE, NOT_SOUND, FULL = range(3)
_INNER, _COMPRESSED = int(INNER_BATCH_FLAGS), int(SysFlag.COMPRESSED)
_TAGS_OVERHEAD, _KEYS_OVERHEAD, _UNIQUE_OVERHEAD = (len(name) + 2 for name in ("TAGS", "KEYS", "UNIQ_KEY"))


@compiled(inline="always")
def _others_length(message):  # type: ignore[no-untyped-def]
    """Return the length of the properties if there are others than TAGS, KEYS and UNIQ_KEY; otherwise 0."""
    own = 0
    if message.tags_length > 0:
        own += message.tags_length + _TAGS_OVERHEAD
    if message.keys_length > 0:
        own += message.keys_length + _KEYS_OVERHEAD
    if message.unique_key_length > 0:
        own += message.unique_key_length + _UNIQUE_OVERHEAD
    return message.properties_length if own < message.properties_length else 0


@compiled(inline="always")
def _place_of(message, field):  # type: ignore[no-untyped-def]
    """Return position and length of a field of a MESSAGE row."""
    if field == TAGS:
        return message.tags_at, message.tags_length
    if field == KEYS:
        return message.keys_at, message.keys_length
    if field == UNIQUE_KEYS:
        return message.unique_key_at, message.unique_key_length
    if field == PROPERTIES:
        return message.properties_at, _others_length(message)
    if field == BORN_HOSTS:
        return message.born_host_at, message.born_host_size
    if field == STORE_HOSTS:
        return message.store_host_at, message.store_host_size
    return message.body_at, message.body_length


@compiled
def measure(messages, sums):  # type: ignore[no-untyped-def]
    """Add the bytes of each field of MESSAGE rows to *sums* (int64, N_SUMS), and the numbers of messages."""
    for i in range(messages.size):
        message = messages[i]
        for field in range(N_FIELDS):
            sums[field] += _place_of(message, field)[1]
        if message.sys_flag & _COMPRESSED:
            sums[COMPRESSED] += 1
        if message.inner > 0:
            sums[ELEMENTS] += 1


@compiled
def _fill_numbers(messages, first, numbers):  # type: ignore[no-untyped-def]
    queue_offsets, physical_offsets, stored, born, flags, sys_flags, reconsume_times, body_crcs, inner = numbers
    for i in range(messages.size):
        message, row = messages[i], first + i
        queue_offsets[row] = message.queue_offset
        physical_offsets[row] = message.physical_offset
        stored[row] = message.store_timestamp
        born[row] = message.born_timestamp
        flags[row] = message.flag
        sys_flags[row] = message.sys_flag & ~_INNER if message.inner > 0 else message.sys_flag
        reconsume_times[row] = message.reconsume_times
        body_crcs[row] = message.body_crc
        inner[row] = message.inner


@compiled
def _append_field(buffer, messages, field, first, ends, out):  # type: ignore[no-untyped-def]
    to = np.int64(ends[field, first])
    for i in range(messages.size):
        at, length = _place_of(messages[i], field)
        copy_bytes(buffer, np.int64(at), np.int64(length), out, to)
        to += length
        ends[field, first + i + 1] = to


@compiled
def _append(buffer, messages, first, sums, numbers, ends, data):  # type: ignore[no-untyped-def]
    _fill_numbers(messages, first, numbers)
    for field in range(N_FIELDS):
        if sums[field] > 0:
            _append_field(buffer, messages, field, first, ends, data[field])
        else:
            ends[field, first + 1 : first + messages.size + 1] = ends[field, first]


@compiled
def fill_columns(buffer, messages, sums, numbers, ends, data):  # type: ignore[no-untyped-def]
    """Fill the columns of MESSAGE rows.

    sums     bytes of each field, as by `measure`; 0: do not gather it
    numbers  `tidemark.format.message.NumberColumns`; in elements of an inner batch, sys_flag is without its flags
    ends     int32, (N_FIELDS, messages + 1): Arrow's offsets of each field, of which the first one is set
    data     a uint8 array for each field, large enough
    """
    for first in range(0, messages.size, TILE):
        tile = messages[first : min(first + TILE, messages.size)]
        _append(buffer, tile, first, sums, numbers, ends, data)


@compiled
def _check_tile(buffer, at, topic, queue_id, places, rows, found):  # type: ignore[no-untyped-def]
    """Check records from *at* on, as many as *rows* has; return their number and their end, or -1 for a fault."""
    n = 0
    while n < rows.size and at < buffer.size:
        size = record_size(buffer, at)
        if size == 0 or get_i4(buffer, at + SYS_FLAG) & _INNER == _INNER:
            return -1, at
        physical_offset = get_i8(buffer, at + PHYSICAL_OFFSET)
        row = rows[n]
        row.fault = check_record(buffer, at, size, physical_offset, topic, queue_id, True, row, found)
        if row.fault != 0:
            return -1, at
        places[n] = at
        n += 1
        at += size
    return n, at


@compiled
def check_and_fill(  # type: ignore[no-untyped-def]
    buffer, at, first, topic, queue_id, places, rows, messages, found, sums, numbers, ends, data
):
    """Check the consecutive records in *buffer* from *at* on, and fill their columns from row *first* on.

    places, rows, messages  room for a tile: positions, DISPATCH_REQUEST and MESSAGE; sums: as for `measure`
    data                    may have *buffer* itself for BODIES: they are moved to its front

    The other arguments are those of `check_records` and `fill_columns`.

    Returns the position and the row of the next tile, and the reason of the stop: ALL_DONE; NOT_SOUND: a record has a
    fault or is an inner batch, or there are more of them than rows; FULL: *data* has no room for a field of the tile.
    """
    while at < buffer.size:
        count, end = _check_tile(buffer, at, topic, queue_id, places, rows, found)
        if count < 0 or first + count >= ends.shape[1]:
            return at, first, NOT_SOUND
        fill_messages(buffer, places[:count], rows[:count], messages, found)
        tile = messages[:count]
        sums[:] = 0
        measure(tile, sums)
        for field in range(N_FIELDS):
            if ends[field, first] + sums[field] > data[field].size:
                return at, first, FULL
        _append(buffer, tile, first, sums, numbers, ends, data)
        at, first = end, first + count
    return at, first, ALL_DONE


@compiled
def put_ids(hosts, host_ends, physical_offsets, inner, ends, out):  # type: ignore[no-untyped-def]
    """Write offset message ids (docs/format.md §2) consecutively; ends (int32, one more) are Arrow's offsets.

    hosts, host_ends  the store hosts as a column
    inner             index of an element in its inner batch, or empty: without it
    """
    to = 0
    ends[0] = 0
    for i in range(physical_offsets.size):
        to = put_hex(hosts, host_ends[i], host_ends[i + 1] - host_ends[i], out, to)
        to = put_offset(physical_offsets[i], inner[i] if inner.size > 0 else 0, out, to)
        ends[i + 1] = to


@compiled
def find_entries(properties, ends, row_ends, name_at, name_length, value_at, value_length):  # type: ignore[no-untyped-def]
    """Write the positions of the entries of a column of properties, as `put_entries` does; return their number.

    row_ends  int32, one more than messages: Arrow's offsets of a map column
    """
    n = 0
    row_ends[0] = 0
    for i in range(ends.size - 1):
        n = put_entries(properties, ends[i], ends[i + 1], n, name_at, name_length, value_at, value_length)
        row_ends[i + 1] = n
    return n
