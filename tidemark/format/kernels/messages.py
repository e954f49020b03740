"""Conversion of records to messages in compiled loops: check records, unwrap inner batches, gather columns.

Twin: `tidemark.format.message`.
"""

from __future__ import annotations

import numpy as np

from tidemark.format.dispatch_request import Fault
from tidemark.format.host import IPV4_HOST_SIZE
from tidemark.format.kernels import properties as names
from tidemark.format.kernels.compiled import compiled, machine
from tidemark.format.kernels.copy import copy_bytes, is_same
from tidemark.format.kernels.crc import masked_crc32
from tidemark.format.kernels.integers import get_i2, get_i4, get_i8, get_u4, put_i8
from tidemark.format.kernels.json_text import put_number
from tidemark.format.kernels.positions import (
    BODY_CRC,
    BORN_HOST,
    BORN_TIMESTAMP,
    BORN_V6,
    ELEMENT_BODY,
    ELEMENT_BODY_LENGTH,
    ELEMENT_FLAG,
    ELEMENT_OVERHEAD,
    FLAG,
    HOST_V6_EXTRA,
    PHYSICAL_OFFSET,
    QUEUE_ID,
    QUEUE_OFFSET,
    RECONSUME_TIMES,
    STORE_HOST,
    STORE_V6,
    TRANSACTION_OFFSET,
)
from tidemark.format.kernels.properties import _name_of as name_of
from tidemark.format.kernels.properties import scan_properties
from tidemark.format.kernels.search import find_byte
from tidemark.format.kernels.walk import _OK as OK
from tidemark.format.kernels.walk import _measure as measure
from tidemark.format.kernels.walk import crc_fault, fill_row
from tidemark.format.record import MIN_RECORD_SIZE
from tidemark.format.sys_flag import INNER_BATCH_FLAGS

_LENGTH, _NUMBER = int(Fault.LENGTH), int(Fault.NUMBER)
OTHER_QUEUE = 32  # in addition to Fault: a valid record of another topic or queue
_INNER_BATCH = INNER_BATCH_FLAGS
_HYPHEN = ord("-")


@compiled
def _is_topic(buffer, at, length, topic):  # type: ignore[no-untyped-def]
    if length != topic.size:
        return False
    for i in range(length):
        if buffer[at + i] != topic[i]:
            return False
    return True


@compiled(inline="always")
def check_record(buffer, at, size, physical_offset, topic, queue_id, with_fields, row, found):  # type: ignore[no-untyped-def]
    """Check one record, fill *row* as `check_records` does except `fault`, and return that."""
    row.physical_offset, row.message_size = physical_offset, size
    outcome, fault, total, body_at, body_length, topic_at, topic_length, properties_length = measure(
        buffer, at, at + size, physical_offset - at, -1
    )
    if outcome != OK:
        return fault if fault != 0 else _LENGTH
    row.queue_id = get_i4(buffer, at + QUEUE_ID)
    if total != size:
        return _LENGTH
    if topic.size > 0 and not (row.queue_id == queue_id and _is_topic(buffer, topic_at, topic_length, topic)):
        return OTHER_QUEUE
    if with_fields:
        properties_at = topic_at + topic_length + 2
        scan_properties(buffer, properties_at, properties_at + properties_length, found)
        record = total, row.queue_id, body_at, body_length, topic_at, topic_length, properties_length
        row.owned = 1
        if not fill_row(buffer, at, physical_offset - at, record, row, found):
            return _NUMBER
    return crc_fault(buffer, at, total, body_at, body_length, properties_length)


@compiled
def check_records(buffer, places, physical_offsets, sizes, topic, queue_id, with_fields, rows, found):  # type: ignore[no-untyped-def]
    """Check the records of units and fill rows[i] with `fault`.

    places       start of record i in *buffer*; sizes: of its unit
    topic        uint8; empty: any topic and queue
    with_fields  fill all fields, as a walk does; otherwise only physical_offset, message_size, queue_id and fault
    rows         DISPATCH_REQUEST, zeros, one per record; with a fault other than a wrong CRC only those few are filled
    """
    for i in range(places.size):
        rows[i].fault = check_record(
            buffer, places[i], sizes[i], physical_offsets[i], topic, queue_id, with_fields, rows[i], found
        )


@compiled
def check_numbers(buffer, places, rows, numbers, number_at, may_restart, fault):  # type: ignore[no-untyped-def]
    """Set *fault* in each row without one whose record has another queue offset than *numbers*.

    number_at    position of the queue offset in a record
    may_restart  accept 0, which a broker can append at the end of a queue
    returns      the number of rows with a fault, of any kind
    """
    faults = 0
    for i in range(rows.size):
        said = get_i8(buffer, places[i] + number_at)
        if rows[i].fault == 0 and said != numbers[i] and not (may_restart and said == 0):
            rows[i].fault = fault
        if rows[i].fault != 0:
            faults += 1
    return faults


@compiled
def _count_elements(buffer, at, end):  # type: ignore[no-untyped-def]
    """Return the number of elements of the wire batch buffer[at:end]; 0 if it is malformed."""
    count = 0
    while at < end:
        if end - at < ELEMENT_OVERHEAD:
            return 0
        size = get_i4(buffer, at)
        if size < ELEMENT_OVERHEAD or size > end - at:
            return 0
        body_length = get_i4(buffer, at + ELEMENT_BODY_LENGTH)
        if body_length < 0 or body_length > size - ELEMENT_OVERHEAD:
            return 0
        properties_length = get_i2(buffer, at + ELEMENT_BODY + body_length)
        if properties_length < 0 or ELEMENT_OVERHEAD + body_length + properties_length != size:
            return 0
        count += 1
        at += size
    return count


@compiled
def count_messages(buffer, rows):  # type: ignore[no-untyped-def]
    """Return the number of messages in *rows* without a fault: elements of inner batches, otherwise one each."""
    total = 0
    for i in range(rows.size):
        row = rows[i]
        if row.fault != 0:
            continue
        count = 0
        if (row.sys_flag & _INNER_BATCH) == _INNER_BATCH:
            count = _count_elements(buffer, row.body_at, row.body_at + row.body_length)
        total += count if count > 0 else 1
    return total


@compiled(inline="always")
def _set_properties(buffer, message, at, length, found):  # type: ignore[no-untyped-def]
    scan_properties(buffer, at, at + length, found)
    message.properties_at, message.properties_length = at, length
    message.tags_at, message.tags_length = found[names.TAGS, 0], found[names.TAGS, 1]
    message.keys_at, message.keys_length = found[names.KEYS, 0], found[names.KEYS, 1]
    message.unique_key_at, message.unique_key_length = found[names.UNIQ_KEY, 0], found[names.UNIQ_KEY, 1]


@compiled
def fill_messages(buffer, places, rows, messages, found):  # type: ignore[no-untyped-def]
    """Fill *messages* (MESSAGE, `count_messages` rows) from checked rows, in their order."""
    n = 0
    for i in range(rows.size):
        row = rows[i]
        if row.fault != 0:
            continue
        place = places[i]
        born_extra = HOST_V6_EXTRA if row.sys_flag & BORN_V6 else 0
        store_extra = HOST_V6_EXTRA if row.sys_flag & STORE_V6 else 0
        after_born = place + born_extra  # where the head would begin if the born host were IPv4
        after_hosts = after_born + store_extra
        count = 0
        if (row.sys_flag & _INNER_BATCH) == _INNER_BATCH:
            count = _count_elements(buffer, row.body_at, row.body_at + row.body_length)
        at = row.body_at
        for k in range(max(count, 1)):
            message = messages[n]
            n += 1
            message.record = i
            message.queue_offset = row.queue_offset + k
            message.physical_offset = row.physical_offset
            message.store_timestamp = row.store_timestamp
            message.sys_flag = row.sys_flag
            message.born_timestamp = get_i8(buffer, place + BORN_TIMESTAMP)
            message.born_host_at, message.born_host_size = place + BORN_HOST, IPV4_HOST_SIZE + born_extra
            message.store_host_at, message.store_host_size = after_born + STORE_HOST, IPV4_HOST_SIZE + store_extra
            if count == 0:
                message.inner = 0
                message.record_size = row.message_size
                message.flag = get_i4(buffer, place + FLAG)
                message.reconsume_times = get_i4(buffer, after_hosts + RECONSUME_TIMES)
                message.prepared_transaction_offset = get_i8(buffer, after_hosts + TRANSACTION_OFFSET)
                message.body_crc = get_i4(buffer, place + BODY_CRC)
                message.body_at, message.body_length = row.body_at, row.body_length
                message.properties_at, message.properties_length = row.properties_at, row.properties_length
                message.tags_at, message.tags_length = row.tags_at, row.tags_length
                message.keys_at, message.keys_length = row.keys_at, row.keys_length
                message.unique_key_at, message.unique_key_length = row.unique_key_at, row.unique_key_length
                continue
            message.inner = k + 1
            message.record_size = 0
            message.flag = get_i4(buffer, at + ELEMENT_FLAG)
            message.reconsume_times = 0
            message.prepared_transaction_offset = 0
            message.body_at = at + ELEMENT_BODY
            message.body_length = get_i4(buffer, at + ELEMENT_BODY_LENGTH)
            message.body_crc = masked_crc32(buffer, message.body_at, message.body_length)
            properties_at = message.body_at + message.body_length + 2
            _set_properties(buffer, message, properties_at, get_i2(buffer, properties_at - 2), found)
            at += get_i4(buffer, at)
    return n


@compiled
def gather(buffer, places, lengths, ends, out):  # type: ignore[no-untyped-def]
    """Copy buffer[places[i] : +lengths[i]] consecutively into *out*; ends (int32, one more) are Arrow's offsets."""
    to = 0
    ends[0] = 0
    for i in range(places.size):
        at, length = places[i], lengths[i]
        copy_bytes(buffer, at, length, out, to)
        to += length
        ends[i + 1] = to


@compiled
def copy_records(buffer, base, physical_offsets, sizes, out, to):  # type: ignore[no-untyped-def]
    """Copy records from *buffer*, whose byte 0 is physical offset *base*, consecutively into *out* from *to*."""
    for i in range(sizes.size):
        at, length = physical_offsets[i] - base, sizes[i]
        copy_bytes(buffer, at, length, out, to)
        to += length


@compiled
def read_small_record(descriptor, position, physical_offset, below, buffer, places, rows, messages, found):  # type: ignore[no-untyped-def]
    """Read and check a record of any queue that fits into *buffer*, from the page cache.

    position  of the record in its file; below: physical offset at which it must end at the latest
    places    int64, one zero
    rows      DISPATCH_REQUEST, one row of zeros; messages: MESSAGE, one row, not filled for an inner batch
    returns   (bytes of the record, number of messages filled); zeros if it is not in memory, too large, or invalid
    """
    read = machine.read_cached(np.int32(descriptor), buffer, np.int64(buffer.size), np.int64(position))
    if read < MIN_RECORD_SIZE:
        return 0, 0
    size = get_i4(buffer, 0)
    if size < MIN_RECORD_SIZE or size > min(read, below - physical_offset):
        return 0, 0
    row = rows[0]
    row.fault = check_record(buffer, 0, size, physical_offset, buffer[:0], 0, True, row, found)
    if row.fault != 0:
        return 0, 0
    if (row.sys_flag & _INNER_BATCH) == _INNER_BATCH:
        return size, 0
    fill_messages(buffer, places, rows, messages, found)
    return size, 1


@compiled(inline="always")
def record_size(buffer, at):  # type: ignore[no-untyped-def]
    """Return the size of the record at *at* as its head has it; 0 if no record of this size fits into the buffer."""
    size = get_i4(buffer, at) if buffer.size - at >= MIN_RECORD_SIZE else 0
    return 0 if size < MIN_RECORD_SIZE or size > buffer.size - at else size


@compiled
def find_records(buffer, places, sizes, physical_offsets, queue_offsets):  # type: ignore[no-untyped-def]
    """Fill the columns for each of the consecutive records in *buffer* and return their number; -1 if they do not fit.

    The columns are long enough: a record has at least MIN_RECORD_SIZE bytes.
    """
    n, at = 0, 0
    while at < buffer.size:
        size = record_size(buffer, at)
        if size == 0:
            return -1
        places[n], sizes[n] = at, size
        physical_offsets[n], queue_offsets[n] = get_i8(buffer, at + PHYSICAL_OFFSET), get_i8(buffer, at + QUEUE_OFFSET)
        n += 1
        at += size
    return n


@compiled(inline="always")
def _hex_digits(value):  # type: ignore[no-untyped-def]
    """Return the eight upper-case hex digits of 32 bits, the first one in the highest byte."""
    x = np.uint64(value)
    x = ((x << np.uint64(16)) | x) & np.uint64(0x0000FFFF0000FFFF)
    x = ((x << np.uint64(8)) | x) & np.uint64(0x00FF00FF00FF00FF)
    x = ((x << np.uint64(4)) | x) & np.uint64(0x0F0F0F0F0F0F0F0F)
    is_letter = ((x + np.uint64(0x0606060606060606)) >> np.uint64(4)) & np.uint64(0x0101010101010101)
    return x + np.uint64(0x3030303030303030) + is_letter * np.uint64(ord("A") - ord("9") - 1)


@compiled(inline="always")
def put_hex(buffer, at, size, out, to):  # type: ignore[no-untyped-def]
    """Write buffer[at : at + size], a multiple of four bytes, at out[to] in upper-case hex; return its end."""
    for k in range(at, at + size, 4):
        put_i8(out, to, _hex_digits(get_u4(buffer, k)))
        to += 8
    return to


@compiled(inline="always")
def put_offset(physical_offset, element, out, to):  # type: ignore[no-untyped-def]
    """Write the second part of an offset message id (docs/format.md §2) at out[to]; return its end.

    element  index in an inner batch, from 1: appended, from 0, after a hyphen. 0: nothing is appended
    """
    offset = np.uint64(physical_offset)
    put_i8(out, to, _hex_digits(offset >> np.uint64(32)))
    put_i8(out, to + 8, _hex_digits(offset & np.uint64(0xFFFFFFFF)))
    to += 16
    if element > 0:
        out[to] = _HYPHEN
        to = put_number(np.int64(element - 1), out, to + 1)
    return to


@compiled
def put_entries(buffer, at, end, first, name_at, name_length, value_at, value_length):  # type: ignore[no-untyped-def]
    """Write the positions of the properties in buffer[at:end] from row *first* on; return the row after the last one.

    Of duplicates the last one counts (docs/format.md §2). TAGS, KEYS and UNIQ_KEY are not included, since MESSAGE has
    their positions. The arrays are long enough: n bytes have at most n / 4 + 1 properties.
    """
    n = first
    position = at
    while position < end:
        segment_end = find_byte(buffer, names.PROPERTY_SEPARATOR, position, end)
        name_end = find_byte(buffer, names.NAME_VALUE_SEPARATOR, position, segment_end)
        if position < name_end < segment_end - 1:
            length = name_end - position
            known = name_of(buffer, position, length)
            if known in (names.TAGS, names.KEYS, names.UNIQ_KEY):
                position = segment_end + 1
                continue
            to = n
            for k in range(first, n):
                if name_length[k] == length and is_same(buffer, name_at[k], position, length):
                    to = k
                    break
            name_at[to], name_length[to] = position, length
            value_at[to], value_length[to] = name_end + 1, segment_end - name_end - 1
            if to == n:
                n += 1
        position = segment_end + 1
    return n
