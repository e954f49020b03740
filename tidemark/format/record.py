"""The CommitLog record and the blank record (docs/format.md §2).

A record is a head of fixed fields, the body, the topic and the properties. Two bits of sys_flag give the size of the
hosts, 8 or 20 bytes; the topic's length has one byte (V1) or two (V2). The functions here are the plain twins of the
loops in `kernels`, which the services run; property tests compare both.
"""

from __future__ import annotations

import enum
import struct
from typing import NamedTuple

import numpy as np

from tidemark.errors import CorruptMessageError
from tidemark.format.host import IPV4_HOST_SIZE, IPV6_HOST_SIZE
from tidemark.format.primitives import masked_crc32, utf16_length
from tidemark.format.sys_flag import SysFlag


class Magic(enum.IntEnum):
    """MAGICCODE values, as signed 32-bit integers."""

    V1 = -626843481  # DAA320A7
    V2 = -626843477  # DAA320AB: the topic's length has two bytes (5.1.0)
    BLANK = -875286124  # CBD43194: fills the end of a file


def record_head(born_size: int, store_size: int) -> np.dtype[np.void]:
    """Return the head dtype of a record with hosts of these sizes in bytes."""
    return np.dtype(
        [  # RocketMQ: MessageExtEncoder; name, type; position with two IPv4 hosts
            ("total_size", ">i4"),  #                     0  whole record
            ("magic", ">i4"),  #                          4  Magic
            ("body_crc", ">i4"),  #                       8  CRC-32 of the stored body, highest bit cleared
            ("queue_id", ">i4"),  #                      12
            ("flag", ">i4"),  #                          16  the user's
            ("queue_offset", ">i8"),  #                  20
            ("physical_offset", ">i8"),  #               28  of the record's own first byte
            ("sys_flag", ">i4"),  #                      36  SysFlag
            ("born_timestamp", ">i8"),  #                40
            ("born_host", f"V{born_size}"),  #           48
            ("store_timestamp", ">i8"),  #               56
            ("store_host", f"V{store_size}"),  #         64
            ("reconsume_times", ">i4"),  #               72
            ("prepared_transaction_offset", ">i8"),  #   76
            ("body_length", ">i4"),  #                   84
        ]
    )


HEAD = record_head(IPV4_HOST_SIZE, IPV4_HOST_SIZE)
assert HEAD.itemsize == 88 and HEAD.fields is not None and HEAD.fields["store_host"][1] == 64
HEADS = {
    (born, store): record_head(born, store)
    for born in (IPV4_HOST_SIZE, IPV6_HOST_SIZE)
    for store in (IPV4_HOST_SIZE, IPV6_HOST_SIZE)
}
MIN_RECORD_SIZE = HEAD.itemsize + 1 + 2  # no body, topic or properties

BLANK = struct.Struct(">ii")  # bytes left in the file, Magic.BLANK; the rest stays unwritten
BLANK_SIZE = BLANK.size
_HOST_FLAGS = int(SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6)
V1_MAX_TOPIC_UNITS = 127  # longer topics (UTF-16 units) are written as V2


def host_sizes(sys_flag: int) -> tuple[int, int]:
    """Return the sizes in bytes of (born host, store host)."""
    return (
        IPV6_HOST_SIZE if sys_flag & SysFlag.BORN_HOST_V6 else IPV4_HOST_SIZE,
        IPV6_HOST_SIZE if sys_flag & SysFlag.STORE_HOST_V6 else IPV4_HOST_SIZE,
    )


def with_host_flags(sys_flag: int, *, born_host: bytes, store_host: bytes) -> int:
    """Return *sys_flag* with the two host bits set for these hosts."""
    sys_flag &= ~_HOST_FLAGS
    if len(born_host) == IPV6_HOST_SIZE:
        sys_flag |= int(SysFlag.BORN_HOST_V6)  # an IntFlag of a negative number would drop unknown bits
    if len(store_host) == IPV6_HOST_SIZE:
        sys_flag |= int(SysFlag.STORE_HOST_V6)
    return sys_flag


class Record(NamedTuple):
    """One record as values. born_host and store_host: 8 or 20 bytes; topic: UTF-8; properties: the raw string."""

    topic: bytes
    body: bytes
    properties: bytes = b""
    queue_id: int = 0
    queue_offset: int = 0
    physical_offset: int = 0
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    store_timestamp: int = 0
    born_host: bytes = bytes(IPV4_HOST_SIZE)
    store_host: bytes = bytes(IPV4_HOST_SIZE)
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    body_crc: int | None = None  # None when encoding: computed
    magic: int = Magic.V1


def magic_of_topic(topic: str) -> Magic:
    """Return V2 for topics of more than 127 UTF-16 units, otherwise V1 (docs/format.md §2)."""
    return Magic.V2 if utf16_length(topic) > V1_MAX_TOPIC_UNITS else Magic.V1


def record_size(
    *, born_size: int, store_size: int, magic: int, body_length: int, topic_length: int, properties_length: int
) -> int:
    """Return the TOTALSIZE of a record with parts of these lengths in bytes."""
    fixed = HEADS[born_size, store_size].itemsize + (2 if magic == Magic.V2 else 1) + 2
    return fixed + body_length + topic_length + properties_length


def encode_record(record: Record) -> bytes:
    """Encode *record*; the host bits of sys_flag are set according to its hosts."""
    sys_flag = with_host_flags(record.sys_flag, born_host=record.born_host, store_host=record.store_host)
    head = np.zeros(1, HEADS[len(record.born_host), len(record.store_host)])
    head["total_size"] = record_size(
        born_size=len(record.born_host),
        store_size=len(record.store_host),
        magic=record.magic,
        body_length=len(record.body),
        topic_length=len(record.topic),
        properties_length=len(record.properties),
    )
    head["body_crc"] = masked_crc32(record.body) if record.body_crc is None else record.body_crc
    head["sys_flag"] = sys_flag
    head["body_length"] = len(record.body)
    for name in ("born_host", "store_host"):
        head[name] = np.void(getattr(record, name))
    for name in _PLAIN_FIELDS:
        head[name] = getattr(record, name)
    topic_length = len(record.topic).to_bytes(2 if record.magic == Magic.V2 else 1, "big")
    properties_length = len(record.properties).to_bytes(2, "big")
    return b"".join((head.tobytes(), record.body, topic_length, record.topic, properties_length, record.properties))


_PLAIN_FIELDS = (
    "magic",
    "queue_id",
    "flag",
    "queue_offset",
    "physical_offset",
    "born_timestamp",
    "store_timestamp",
    "reconsume_times",
    "prepared_transaction_offset",
)


def decode_record(data: bytes | memoryview) -> Record:
    """Decode the record at the start of *data*; bytes after it are ignored.

    Raises CorruptMessageError if the bytes are not a record with consistent lengths. The CRC is not verified.
    """
    raw = memoryview(data)
    if len(raw) < HEAD.itemsize:
        raise CorruptMessageError(f"{len(raw)} bytes are fewer than a record's head", reason="TOO_SHORT")
    sys_flag = int.from_bytes(raw[36:40], "big", signed=True)
    born_size, store_size = host_sizes(sys_flag)
    dtype = HEADS[born_size, store_size]
    if len(raw) < dtype.itemsize:
        raise CorruptMessageError(f"{len(raw)} bytes are fewer than a record's head", reason="TOO_SHORT")
    head = np.frombuffer(raw, dtype, count=1)[0]
    if head["magic"] not in (Magic.V1, Magic.V2):
        raise CorruptMessageError("the bytes have no record's magic", reason="MAGIC")
    total, body_length = int(head["total_size"]), int(head["body_length"])
    if total > len(raw):
        raise CorruptMessageError(f"the record has {total} bytes, but only {len(raw)} are given", reason="TOO_SHORT")
    length_size = 2 if head["magic"] == Magic.V2 else 1
    body_end = dtype.itemsize + body_length
    topic_at = body_end + length_size
    if body_length < 0 or topic_at > total:
        raise CorruptMessageError("the body exceeds the record", reason="LENGTH")
    topic_end = topic_at + int.from_bytes(raw[body_end:topic_at], "big", signed=True)
    properties_at = topic_end + 2
    if topic_end < topic_at or properties_at > total:
        raise CorruptMessageError("the topic exceeds the record", reason="LENGTH")
    properties_length = int.from_bytes(raw[topic_end:properties_at], "big", signed=True)
    if properties_length < 0 or properties_at + properties_length != total:
        raise CorruptMessageError("the record's size is not the sum of its parts", reason="LENGTH")
    return Record(
        topic=bytes(raw[topic_at:topic_end]),
        body=bytes(raw[dtype.itemsize : body_end]),
        properties=bytes(raw[properties_at:total]),
        sys_flag=sys_flag,
        body_crc=int(head["body_crc"]),
        born_host=head["born_host"].tobytes(),
        store_host=head["store_host"].tobytes(),
        **{name: int(head[name]) for name in _PLAIN_FIELDS},
    )


def encode_blank(bytes_left: int) -> bytes:
    """Return the 8-byte blank record for a file with *bytes_left* bytes left."""
    return BLANK.pack(bytes_left, Magic.BLANK)
