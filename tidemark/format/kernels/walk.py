"""Walk over records: check each and fill its DispatchRequest row; and search for the next record after damage.

format.md §13 (CommitLog.checkMessageAndReturnSize), and PHYSICALOFFSET equals the position. Twin: tests/plain_check.py.
"""

from __future__ import annotations

import numpy as np

from tidemark.format.dispatch_request import Fault, Outcome
from tidemark.format.kernels import properties as names
from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.copy import copy_bytes
from tidemark.format.kernels.crc import masked_crc32
from tidemark.format.kernels.integers import get_i2, get_i4, get_i8, parse_decimal, put_i4
from tidemark.format.kernels.positions import (
    BODY_CRC,
    BODY_LENGTH,
    BORN_V6,
    HOST_V6_EXTRA,
    MAGIC,
    PHYSICAL_OFFSET,
    QUEUE_ID,
    QUEUE_OFFSET,
    STORE_TIMESTAMP,
    STORE_V6,
    SYS_FLAG,
)
from tidemark.format.kernels.properties import scan_properties
from tidemark.format.kernels.text import text_hash
from tidemark.format.properties import PROPERTY_CRC, PROPERTY_CRC_DIGITS, PROPERTY_CRC_SIZE
from tidemark.format.record import BLANK_SIZE, MIN_RECORD_SIZE, Magic
from tidemark.format.tags import DELAY_LEVELS_MS, SCHEDULE_TOPIC

_V1, _V2, _BLANK = int(Magic.V1), int(Magic.V2), int(Magic.BLANK)
_BLANK_BYTE, _RECORD_BYTE = _BLANK >> 24 & 0xFF, _V1 >> 24 & 0xFF  # first byte of the magic; V1 and V2 share it
_END, _PARTIAL, _BLANK_FOUND, _BAD, _FULL = (int(outcome) for outcome in Outcome)
_NONE, _MAGIC, _LENGTH, _POSITION, _BODY_CRC, _NUMBER, _PROPERTY_CRC = (int(fault) for fault in Fault)
_MIN = MIN_RECORD_SIZE
_CRC_HEAD = np.frombuffer(f"{PROPERTY_CRC}\x01".encode(), np.uint8)
_CRC_SIZE, _CRC_DIGITS = PROPERTY_CRC_SIZE, PROPERTY_CRC_DIGITS
_SCHEDULE = np.frombuffer(SCHEDULE_TOPIC.encode(), np.uint8)
_DELAYS = np.array(DELAY_LEVELS_MS, np.int64)
_I2_MAX, _I4_MAX, _I8_MAX = (1 << 15) - 1, (1 << 31) - 1, (1 << 63) - 1

CRC_OFF, CRC_STOPS, CRC_MARKS = range(3)
_OK = -1  # in addition to the outcomes: a record


@compiled
def _measure(buffer, at, end, base, file_end):  # type: ignore[no-untyped-def]
    """Return outcome or _OK, fault, total, body position and length, topic's, and properties length of bytes *at*."""
    left = end - at
    if left <= 0:
        return _END, _NONE, 0, 0, 0, 0, 0, 0
    if file_end >= 0 and file_end - at < BLANK_SIZE:  # there is always room for a blank record
        return _BAD, _MAGIC, 0, 0, 0, 0, 0, 0
    if left < BLANK_SIZE:
        return _PARTIAL, _MAGIC, 0, 0, 0, 0, 0, 0
    total = get_i4(buffer, at)
    magic = get_i4(buffer, at + MAGIC)
    if magic == _BLANK:
        if file_end >= 0 and total != file_end - at:
            return _BAD, _LENGTH, 0, 0, 0, 0, 0, 0
        return _BLANK_FOUND, _NONE, total, 0, 0, 0, 0, 0
    if magic not in (_V1, _V2):
        return _BAD, _MAGIC, 0, 0, 0, 0, 0, 0
    if total < _MIN or (file_end >= 0 and total > file_end - at):
        return _BAD, _LENGTH, 0, 0, 0, 0, 0, 0
    if left < SYS_FLAG + 4:
        return _PARTIAL, _LENGTH, total, 0, 0, 0, 0, 0
    sys_flag = get_i4(buffer, at + SYS_FLAG)
    body_length_at = at + BODY_LENGTH
    body_length_at += (HOST_V6_EXTRA if sys_flag & BORN_V6 else 0) + (HOST_V6_EXTRA if sys_flag & STORE_V6 else 0)
    body_at = body_length_at + 4
    if get_i8(buffer, at + PHYSICAL_OFFSET) != base + at:
        return _BAD, _POSITION, 0, 0, 0, 0, 0, 0
    if total > left:
        return _PARTIAL, _LENGTH, total, 0, 0, 0, 0, 0
    record_end = at + total
    if body_at + 3 > record_end:
        return _BAD, _LENGTH, 0, 0, 0, 0, 0, 0
    body_length = get_i4(buffer, body_length_at)
    length_size = 2 if magic == _V2 else 1
    if body_length < 0 or body_length > record_end - body_at - length_size - 2:
        return _BAD, _LENGTH, 0, 0, 0, 0, 0, 0
    topic_at = body_at + body_length + length_size
    topic_length = get_i2(buffer, topic_at - 2) if magic == _V2 else np.int64(np.int8(buffer[topic_at - 1]))
    if topic_length < 0 or topic_length > record_end - topic_at - 2:
        return _BAD, _LENGTH, 0, 0, 0, 0, 0, 0
    properties_length = get_i2(buffer, topic_at + topic_length)
    if properties_length < 0 or topic_at + topic_length + 2 + properties_length != record_end:
        return _BAD, _LENGTH, 0, 0, 0, 0, 0, 0
    return _OK, _NONE, total, body_at, body_length, topic_at, topic_length, properties_length


@compiled(inline="always")
def _queue_hash(buffer, topic_at, topic_length, queue_id):  # type: ignore[no-untyped-def]
    value = np.uint64(0xCBF29CE484222325)
    prime = np.uint64(0x100000001B3)
    for i in range(topic_at, topic_at + topic_length):
        value = (value ^ np.uint64(buffer[i])) * prime
    return (value ^ np.uint64(np.uint32(queue_id))) * prime


@compiled
def owner_of(buffer, topic_at, topic_length, queue_id, shards, scratch):  # type: ignore[no-untyped-def]
    """Return the shard of a queue: murmur3's finaliser of crc32(topic ‖ queue id as i32, big-endian), mod shards.

    The finaliser is needed because a CRC is linear: its lowest bits are the same for queues 0 to 3 of any topic.
    scratch: uint8, at least topic_length + 4.
    """
    copy_bytes(buffer, topic_at, topic_length, scratch, 0)
    put_i4(scratch, topic_length, queue_id)
    h = np.uint32(masked_crc32(scratch, 0, topic_length + 4))
    h = np.uint32((h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    h = np.uint32((h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.int64(h ^ (h >> np.uint32(16))) % shards


@compiled
def _is_schedule(buffer, at, length):  # type: ignore[no-untyped-def]
    if length != _SCHEDULE.size:
        return False
    for i in range(length):
        if buffer[at + i] != _SCHEDULE[i]:
            return False
    return True


@compiled(inline="always")
def _fill_numbers(buffer, row, found):  # type: ignore[no-untyped-def]
    """Set base offset, batch size and tags code of *row*; False if a number is invalid (RocketMQ's parser throws)."""
    row.base_offset = row.queue_offset
    row.batch_size = 1
    row.tags_code = 0
    if row.tags_length > 0 or found[names.INNER_NUM, 1] > 0 or found[names.DELAY, 1] > 0:
        return _read_numbers(buffer, row, found)
    return True


@compiled
def _read_numbers(buffer, row, found):  # type: ignore[no-untyped-def]
    num, base = names.INNER_NUM, names.INNER_BASE
    if found[num, 1] > 0 and found[base, 1] > 0:
        base_ok, base_offset = parse_decimal(buffer, found[base, 0], found[base, 1], _I8_MAX)
        num_ok, batch_size = parse_decimal(buffer, found[num, 0], found[num, 1], _I2_MAX)
        if not (base_ok and num_ok):
            return False
        row.base_offset = base_offset
        row.batch_size = batch_size
    if row.tags_length > 0:
        row.tags_code = np.int64(np.int32(text_hash(buffer, row.tags_at, row.tags_length, 0)))
    delay = names.DELAY
    if found[delay, 1] > 0 and _is_schedule(buffer, row.topic_at, row.topic_length):
        ok, level = parse_decimal(buffer, found[delay, 0], found[delay, 1], _I4_MAX)
        if not ok:
            return False
        if level > 0:
            row.tags_code = row.store_timestamp + _DELAYS[min(level, _DELAYS.size) - 1]
    return True


@compiled
def _is_body_right(buffer, at, body_at, body_length):  # type: ignore[no-untyped-def]
    return body_length == 0 or masked_crc32(buffer, body_at, body_length) == get_i4(buffer, at + BODY_CRC)


@compiled
def _has_property_crc(buffer, end, properties_length):  # type: ignore[no-untyped-def]
    """Return True if the properties that end at *end* end with a CRC of the whole record (docs/format.md §2)."""
    if properties_length < _CRC_SIZE or buffer[end - 1] != 2:
        return False
    for i in range(_CRC_HEAD.size):
        if buffer[end - _CRC_SIZE + i] != _CRC_HEAD[i]:
            return False
    return True


@compiled
def crc_fault(buffer, at, total, body_at, body_length, properties_length):  # type: ignore[no-untyped-def]
    """Return the fault by CRCs of the record at *at*: the body's, and the whole record's if it has one."""
    if not _is_body_right(buffer, at, body_at, body_length):
        return _BODY_CRC
    end = at + total
    if not _has_property_crc(buffer, end, properties_length):
        return _NONE
    left = masked_crc32(buffer, at, total - _CRC_SIZE)
    for i in range(end - 1 - _CRC_DIGITS, end - 1):  # the least significant digit comes first
        if buffer[i] != 48 + left % 10:
            return _PROPERTY_CRC
        left //= 10
    return _NONE


@compiled(inline="always")
def fill_row(buffer, at, base, record, row, found):  # type: ignore[no-untyped-def]
    """Fill *row* of the measured record at *at*, all but `fault` and `owned`; False if a number is invalid.

    record  total size, queue id, body position and length, topic position and length, properties length
    found   result of `scan_properties`
    """
    total, queue_id, body_at, body_length, topic_at, topic_length, properties_length = record
    properties_at = topic_at + topic_length + 2
    row.physical_offset = base + at
    row.message_size = total
    row.queue_id = queue_id
    row.queue_offset = get_i8(buffer, at + QUEUE_OFFSET)
    row.sys_flag = get_i4(buffer, at + SYS_FLAG)
    row.store_timestamp = get_i8(buffer, at + STORE_TIMESTAMP + (HOST_V6_EXTRA if row.sys_flag & BORN_V6 else 0))
    row.topic_hash = _queue_hash(buffer, topic_at, topic_length, queue_id)
    row.body_at = body_at
    row.body_length = body_length
    row.topic_at = topic_at
    row.topic_length = topic_length
    row.properties_at = properties_at
    row.properties_length = properties_length
    row.tags_at, row.tags_length = found[names.TAGS, 0], found[names.TAGS, 1]
    row.keys_at, row.keys_length = found[names.KEYS, 0], found[names.KEYS, 1]
    row.unique_key_at, row.unique_key_length = found[names.UNIQ_KEY, 0], found[names.UNIQ_KEY, 1]
    row.multi_dispatch_at, row.multi_dispatch_length = (
        found[names.MULTI_DISPATCH, 0],
        found[names.MULTI_DISPATCH, 1],
    )
    row.multi_offsets_at, row.multi_offsets_length = found[names.MULTI_OFFSETS, 0], found[names.MULTI_OFFSETS, 1]
    return _fill_numbers(buffer, row, found)


@compiled
def walk(buffer, start, end, base, file_end, crc_mode, shard, shards, light, rows, found, scratch):  # type: ignore[no-untyped-def]
    """Check consecutive records of buffer[start:end] until one is invalid or the buffer, the file or *rows* end.

    base      physical offset of buffer[0]; file_end: end of the segment as position in the buffer, -1 unknown
    crc_mode  CRC_OFF, CRC_STOPS (a wrong CRC is BAD), CRC_MARKS (it gives a row with a fault)
    shard     rows only for queues of this shard; only these are verified. shards = 1: all
    light     rows also for other shards' records that name light queues, with owned = 0
    rows      DISPATCH_REQUEST to fill
    returns   (rows filled, position of the stop, outcome, fault, number of records, number of rows with a fault)
    """
    n = 0
    seen = 0
    faulty = 0
    at = start
    while True:
        outcome, fault, total, body_at, body_length, topic_at, topic_length, properties_length = _measure(
            buffer, at, end, base, file_end
        )
        if outcome != _OK:
            return n, at, outcome, fault, seen, faulty
        if n == rows.size:
            return n, at, _FULL, _NONE, seen, faulty
        queue_id = get_i4(buffer, at + QUEUE_ID)
        properties_at = topic_at + topic_length + 2
        owned = shards == 1 or owner_of(buffer, topic_at, topic_length, queue_id, shards, scratch) == shard
        if owned or light:
            scan_properties(buffer, properties_at, properties_at + properties_length, found)
        if not owned and not (light and found[names.MULTI_DISPATCH, 1] > 0):
            at += total
            seen += 1
            continue
        row = rows[n]
        row.owned = 1 if owned else 0
        row.fault = _NONE
        if crc_mode != CRC_OFF:
            row.fault = crc_fault(buffer, at, total, body_at, body_length, properties_length)
            if crc_mode == CRC_STOPS and row.fault != _NONE:
                return n, at, _BAD, row.fault, seen, faulty
        record = total, queue_id, body_at, body_length, topic_at, topic_length, properties_length
        if not fill_row(buffer, at, base, record, row, found):
            return n, at, _BAD, _NUMBER, seen, faulty
        if row.fault != _NONE:
            faulty += 1
        n += 1
        seen += 1
        at += total


@compiled
def find_next(buffer, start, end, base, file_end):  # type: ignore[no-untyped-def]
    """Return the position of the first whole, valid record or the file's blank record in buffer[start:end]; -1 if none.

    Valid means: magic, position, lengths and CRCs. A partial record at the buffer's end does not count: read more and
    search again.
    """
    for at in range(start, end - BLANK_SIZE + 1):
        if buffer[at + MAGIC] == _BLANK_BYTE:
            if file_end < 0 or get_i4(buffer, at) != file_end - at:
                continue
        elif buffer[at + MAGIC] != _RECORD_BYTE:
            continue
        outcome, _, total, body_at, body_length, _, _, properties_length = _measure(buffer, at, end, base, file_end)
        if outcome == _BLANK_FOUND:
            return at
        if outcome == _OK and crc_fault(buffer, at, total, body_at, body_length, properties_length) == _NONE:
            return at
    return -1
