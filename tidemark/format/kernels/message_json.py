"""Messages as JSON objects in compiled loops. Twin, with the same names: `tidemark.read.messages.message_rows`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidemark.format.host import IPV4_HOST_SIZE
from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.copy import copy_bytes
from tidemark.format.kernels.json_text import NOT_UTF8, is_utf8, put_base64, put_number, put_string
from tidemark.format.kernels.messages import put_entries, put_hex, put_offset
from tidemark.format.sys_flag import INNER_BATCH_FLAGS, SysFlag

_COMPRESSED, _INNER_FLAGS = int(SysFlag.COMPRESSED), int(INNER_BATCH_FLAGS)
_IPV4_SIZE = IPV4_HOST_SIZE
_FIXED_ROOM = 1024  # upper bound for names, numbers, ids and hosts
ALL_DONE, FULL, RARE = range(3)


def _text(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)


_QUEUE_OFFSET, _PHYSICAL_OFFSET = _text('{"queue_offset":'), _text(',"physical_offset":')
_MESSAGE_ID, _OFFSET_ID = _text(',"message_id":'), _text(',"offset_msg_id":')
_STORED, _BORN = _text(',"store_timestamp_ms":'), _text(',"born_timestamp_ms":')
_TAG, _NO_TAG, _KEYS = _text(',"tag":'), _text(',"tag":null'), _text(',"keys":[')
_PROPERTIES, _FLAG = _text('],"properties":{'), _text('},"flag":')
_SYS_FLAG, _RECONSUMED = _text(',"sys_flag":'), _text(',"reconsume_times":')
_BORN_HOST, _STORE_HOST, _CRC = _text(',"born_host":"'), _text('","store_host":"'), _text('","body_crc":')
_BODY, _UTF8, _BASE64 = _text(',"body":'), _text(',"body_encoding":"utf8"}'), _text(',"body_encoding":"base64"}')


@compiled(inline="always")
def _put(text, out, to):  # type: ignore[no-untyped-def]
    copy_bytes(text, 0, text.size, out, to)
    return to + text.size


@compiled
def _put_host(buffer, at, out, to):  # type: ignore[no-untyped-def]
    """Write the 8 bytes of a host as ``127.0.0.1:8081``."""
    for i in range(4):
        to = put_number(np.int64(buffer[at + i]), out, to)
        out[to] = 0x2E if i < 3 else 0x3A
        to += 1
    port = np.int32(0)
    for i in range(at + 4, at + 8):
        port = np.int32(port << 8) | np.int32(buffer[i])
    return put_number(np.int64(port), out, to)


@compiled
def _put_keys(buffer, at, length, out, to):  # type: ignore[no-untyped-def]
    """Write the non-empty pieces between blanks."""
    end = at + length
    first = to
    while at < end:
        piece_end = at
        while piece_end < end and buffer[piece_end] != 0x20:
            piece_end += 1
        if piece_end > at:
            if to > first:
                out[to] = 0x2C
                to += 1
            to = put_string(buffer, at, piece_end - at, out, to)
        at = piece_end + 1
    return to


@compiled
def room_for(message):  # type: ignore[no-untyped-def]
    """Return an upper bound for the size of the message's JSON in bytes."""
    return _FIXED_ROOM + 6 * (np.int64(message.properties_length) + np.int64(message.body_length))


@compiled
def put_messages(buffer, messages, first, is_text, terminator, out, scratch):  # type: ignore[no-untyped-def]
    """Write messages[first:] as objects, each followed by *terminator*; return (next message, end, reason of the stop).

    is_text     UTF-8 bodies as text; all other bodies, or all if False, in base64
    terminator  a byte
    scratch     int32, shape (4, m): m entries of properties, as many as a message may have
    stops       ALL_DONE; FULL: *out* has no `room_for` the next message; RARE: the next message needs the plain twin:
                it has a compressed body, properties that are not UTF-8, or an IPv6 host
    """
    to = 0
    for n in range(first, messages.size):
        message = messages[n]
        if to + room_for(message) > out.size:
            return n, to, FULL
        if (
            message.sys_flag & _COMPRESSED
            or message.born_host_size != _IPV4_SIZE
            or message.store_host_size != _IPV4_SIZE
            or not is_utf8(buffer, message.properties_at, message.properties_length)
        ):
            return n, to, RARE
        to = put_number(message.queue_offset, out, _put(_QUEUE_OFFSET, out, to))
        to = put_number(message.physical_offset, out, _put(_PHYSICAL_OFFSET, out, to))
        to = _put(_MESSAGE_ID, out, to)
        if message.unique_key_length > 0:
            to = put_string(buffer, message.unique_key_at, message.unique_key_length, out, to)
        else:
            to = _put_id(buffer, message, message.inner, out, to)
        to = _put_id(buffer, message, 0, out, _put(_OFFSET_ID, out, to))
        to = put_number(message.store_timestamp, out, _put(_STORED, out, to))
        to = put_number(message.born_timestamp, out, _put(_BORN, out, to))
        if message.tags_length > 0:
            to = put_string(buffer, message.tags_at, message.tags_length, out, _put(_TAG, out, to))
        else:
            to = _put(_NO_TAG, out, to)
        to = _put_keys(buffer, message.keys_at, message.keys_length, out, _put(_KEYS, out, to))
        to = _put(_PROPERTIES, out, to)
        if message.properties_length > 0:
            at, end = message.properties_at, message.properties_at + message.properties_length
            entries = put_entries(buffer, at, end, 0, scratch[0], scratch[1], scratch[2], scratch[3])
            for i in range(entries):
                if i > 0:
                    out[to] = 0x2C
                    to += 1
                to = put_string(buffer, scratch[0, i], scratch[1, i], out, to)
                out[to] = 0x3A
                to = put_string(buffer, scratch[2, i], scratch[3, i], out, to + 1)
        to = put_number(np.int64(message.flag), out, _put(_FLAG, out, to))
        sys_flag = np.int64(message.sys_flag)
        if message.inner:
            sys_flag &= ~_INNER_FLAGS
        to = put_number(sys_flag, out, _put(_SYS_FLAG, out, to))
        to = put_number(np.int64(message.reconsume_times), out, _put(_RECONSUMED, out, to))
        to = _put_host(buffer, message.born_host_at, out, _put(_BORN_HOST, out, to))
        to = _put_host(buffer, message.store_host_at, out, _put(_STORE_HOST, out, to))
        to = put_number(np.int64(message.body_crc), out, _put(_CRC, out, to))
        to = _put_body(buffer, message.body_at, message.body_length, is_text, out, _put(_BODY, out, to))
        out[to] = terminator
        to += 1
    return messages.size, to, ALL_DONE


@compiled
def _put_id(buffer, message, element, out, to):  # type: ignore[no-untyped-def]
    """Write the offset message id with quotes; *element* as in `put_offset`."""
    out[to] = 0x22
    to = put_hex(buffer, message.store_host_at, message.store_host_size, out, to + 1)
    to = put_offset(message.physical_offset, element, out, to)
    out[to] = 0x22
    return to + 1


@compiled
def _put_body(buffer, at, length, is_text, out, to):  # type: ignore[no-untyped-def]
    """Write the body and its encoding, which end the object."""
    if is_text:
        end = put_string(buffer, at, length, out, to)
        if end != NOT_UTF8:
            return _put(_UTF8, out, end)
    return _put(_BASE64, out, put_base64(buffer, at, length, out, to))
