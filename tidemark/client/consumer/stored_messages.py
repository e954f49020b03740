"""Messages from records as stored: each is a view of the received bytes, decoded when the program looks at it.

Only the position and the body are decoded at once, and the body's CRC is checked (docs/format.md §2). This is the plain
twin of the service's compiled loops, without numpy.
"""

from __future__ import annotations

import functools
import struct
import zlib
from typing import Any, NamedTuple

from tidemark.client.answers import SkippedAnswer
from tidemark.client.received_message import ReceivedMessage, TopicQueue
from tidemark.errors import BatchMalformedError, CorruptMessageError
from tidemark.format.compression import decompress
from tidemark.format.elements import Element, decode_elements
from tidemark.format.host import decode_host
from tidemark.format.message_id import encode_offset_message_id
from tidemark.format.properties import KEYS, TAGS, UNIQ_KEY, decode_properties, split_keys
from tidemark.format.sys_flag import INNER_BATCH_FLAGS, SysFlag

_V4_HEAD = struct.Struct(">iii8xq8xi44xi")  # size, magic, body CRC, queue offset, sys_flag, body length; two IPv4 hosts
_FIRST = struct.Struct(">iiiiiqqiq")  # the fields before the born host, which all records have
_AFTER_HOSTS = struct.Struct(">iqi")  # reconsume times, prepared transaction offset, body length
_INT64, _INT32, _INT16 = struct.Struct(">q"), struct.Struct(">i"), struct.Struct(">h")
_V4_BODY_AT, _BORN_HOST_AT = _V4_HEAD.size, _FIRST.size
_V1, _V2 = -626843481, -626843477  # MAGICCODE, docs/format.md §2
_V4_SIZE, _V6_SIZE = 8, 20
_BORN_V6, _STORE_V6 = int(SysFlag.BORN_HOST_V6), int(SysFlag.STORE_HOST_V6)
_COMPRESSED, _CRC_MASK = int(SysFlag.COMPRESSED), 0x7FFFFFFF
_SPECIAL = (
    _BORN_V6 | _STORE_V6 | INNER_BATCH_FLAGS | _COMPRESSED
)  # records with these bits take more than the shortest way
_BODY_CRC = "BODY_CRC"  # reason of a skipped record, as in the service's answers


class StoredMessage(ReceivedMessage):
    """A message in the bytes of a page. Attributes that are not set yet are decoded at their first use."""

    __slots__ = ("_at", "_element", "_page")
    _element: _Inner | None  # unset: the message is a record of its own

    def __init__(self, topic: str, queue_id: int, queue_offset: int, page: bytes, at: int) -> None:
        # the attributes of ReceivedMessage stay unset, which makes Python call `__getattr__`
        self.topic = topic
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self._page = page
        self._at = at  # of the record

    def __getattr__(self, name: str) -> Any:
        if name == "_element":
            return None
        if name == "_store":
            return ""
        if name.startswith("_"):
            raise AttributeError(name)
        _fill(self)
        return object.__getattribute__(self, name)


class _Inner(NamedTuple):
    """A message of an inner batch."""

    number: int
    element: Element


class RecordsPage(NamedTuple):
    """The messages of a page, and its damaged records."""

    messages: list[ReceivedMessage]
    skipped: list[SkippedAnswer]


def decode_records(
    queue: TopicQueue, page: bytes, *, least_offset: int, tags: frozenset[str] | None = None
) -> RecordsPage:
    """Return the messages of *page*, records of *queue* one after the other, from queue offset *least_offset* on.

    tags  return only messages with one of these tags; None for all
    """
    topic, queue_id = queue
    messages: list[ReceivedMessage] = []
    skipped: list[SkippedAnswer] = []
    add, unpack, crc32 = messages.append, _V4_HEAD.unpack_from, zlib.crc32
    at, end = 0, len(page)
    while at < end:
        size, _, crc, queue_offset, sys_flag, body_length = unpack(page, at)
        if size < _V4_BODY_AT:
            raise CorruptMessageError(f"the page has no record at byte {at}", at=at)
        if sys_flag & _SPECIAL:
            _take_special(queue, page, at, least_offset, messages, skipped)
        else:
            body_at = at + _V4_BODY_AT
            body = page[body_at : body_at + body_length]
            if crc32(body) & _CRC_MASK != crc and body:
                skipped.append(_skip(page, at, queue_offset, _BODY_CRC))
            elif queue_offset >= least_offset:
                message = StoredMessage(topic, queue_id, queue_offset, page, at)
                message.body = body
                add(message)
        at += size
    if tags is not None:
        messages = [message for message in messages if message.tag in tags]
    return RecordsPage(messages, skipped)


def _take_special(
    queue: TopicQueue,
    page: bytes,
    at: int,
    least_offset: int,
    messages: list[ReceivedMessage],
    skipped: list[SkippedAnswer],
) -> None:
    """Add the messages of a record with IPv6 hosts, a compressed body, or an inner batch."""
    _, _, crc, _, _, queue_offset, _, sys_flag, _ = _FIRST.unpack_from(page, at)
    body = _body_of(page, at, sys_flag)
    if zlib.crc32(body) & _CRC_MASK != crc and body:
        skipped.append(_skip(page, at, queue_offset, _BODY_CRC))
        return
    inner = [_Inner(number, element) for number, element in enumerate(_elements(body, sys_flag))]
    for number, element in enumerate(inner or [None]):
        if queue_offset + number >= least_offset:
            message = StoredMessage(*queue, queue_offset + number, page, at)
            if element is not None:
                message._element = element
            if not sys_flag & _COMPRESSED:
                message.body = body if element is None else element.element.body
            messages.append(message)


def _elements(body: bytes, sys_flag: int) -> list[Element]:
    """Return the elements of an inner batch; none for another record, and for a body that is not a batch."""
    if sys_flag & INNER_BATCH_FLAGS != INNER_BATCH_FLAGS:
        return []
    try:
        return list(decode_elements(body))
    except BatchMalformedError:
        return []


def _skip(page: bytes, at: int, queue_offset: int, reason: str) -> SkippedAnswer:
    (physical_offset,) = _INT64.unpack_from(page, at + 28)
    return {"physical_offset": physical_offset, "queue_offset": queue_offset, "reason": reason, "message_count": 1}


# ── the parts of a record that are decoded later ────────────────────────────────────────────────────────────────────


def _host_sizes(sys_flag: int) -> tuple[int, int]:
    return _V6_SIZE if sys_flag & _BORN_V6 else _V4_SIZE, _V6_SIZE if sys_flag & _STORE_V6 else _V4_SIZE


def _body_place(page: bytes, at: int, sys_flag: int) -> tuple[int, int]:
    """Return start and end of the body."""
    start = at + _BORN_HOST_AT + sum(_host_sizes(sys_flag)) + _INT64.size + _AFTER_HOSTS.size
    (length,) = _INT32.unpack_from(page, start - _INT32.size)
    return start, start + length


def _body_of(page: bytes, at: int, sys_flag: int) -> bytes:
    start, end = _body_place(page, at, sys_flag)
    return page[start:end]


def _properties_of(page: bytes, at: int) -> dict[str, str]:
    _, magic, *_, sys_flag, _ = _FIRST.unpack_from(page, at)
    _, topic_at = _body_place(page, at, sys_flag)
    if magic == _V2:
        properties_at = topic_at + 2 + _INT16.unpack_from(page, topic_at)[0]
    else:
        properties_at = topic_at + 1 + page[topic_at]
    (length,) = _INT16.unpack_from(page, properties_at)
    start = properties_at + _INT16.size
    return decode_properties(page[start : start + length])


@functools.lru_cache(maxsize=1024)
def _host_text(raw: bytes) -> str:
    return str(decode_host(raw))


def _fill(message: StoredMessage) -> None:
    """Set all attributes that are decoded late."""
    page, at, inner = message._page, message._at, message._element
    _, _, _, _, flag, _, physical_offset, sys_flag, born_timestamp = _FIRST.unpack_from(page, at)
    born_size, store_size = _host_sizes(sys_flag)
    born_at = at + _BORN_HOST_AT
    store_at = born_at + born_size + _INT64.size
    store_host = page[store_at : store_at + store_size]
    properties = _properties_of(page, at) if inner is None else decode_properties(inner.element.properties)
    offset_message_id = encode_offset_message_id(store_host, physical_offset)
    message.flag = flag if inner is None else inner.element.flag
    message.sys_flag = sys_flag if inner is None else sys_flag & ~INNER_BATCH_FLAGS
    if sys_flag & _COMPRESSED:
        stored = _body_of(page, at, sys_flag) if inner is None else inner.element.body
        original = decompress(stored, sys_flag)
        message.body = stored if original is None else original
        message.sys_flag &= ~0 if original is None else ~_COMPRESSED
    message.physical_offset = physical_offset
    message.born_timestamp_ms = born_timestamp
    (message.store_timestamp_ms,) = _INT64.unpack_from(page, store_at - _INT64.size)
    message.reconsume_times = _INT32.unpack_from(page, store_at + store_size)[0] if inner is None else 0
    message.born_host = _host_text(page[born_at : born_at + born_size])
    message.store_host = _host_text(store_host)
    message.offset_msg_id = offset_message_id
    message.tag = properties.pop(TAGS, None)
    message.keys = tuple(split_keys(properties.pop(KEYS, "")))
    named = properties.pop(UNIQ_KEY, None)
    message.message_id = named or (offset_message_id if inner is None else f"{offset_message_id}-{inner.number}")
    message.properties = properties
