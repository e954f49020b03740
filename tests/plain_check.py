"""The walk over records in plain Python (docs/format.md §13): the twin of `tidemark.format.kernels.walk`.

In addition to the spec's steps, it checks that a record's PHYSICALOFFSET is its position and that a record or blank
record
stays within its file. A walk may be restricted to the queues of one shard.
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import NamedTuple

from tests.builders import MAGIC_BLANK, MAGIC_V1, MAGIC_V2

PLACES = (
    ("tags", b"TAGS"),
    ("keys", b"KEYS"),
    ("unique_key", b"UNIQ_KEY"),
    ("multi_dispatch", b"INNER_MULTI_DISPATCH"),
    ("multi_offsets", b"INNER_MULTI_QUEUE_OFFSET"),
)
DELAYS_S = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
Row = dict[str, int]


class Stop(Exception):  # noqa: N818 - no error: how a walk ends
    """Ends the walk at this record."""

    def __init__(self, outcome: str, fault: str = "NONE") -> None:
        super().__init__(outcome, fault)
        self.outcome, self.fault = outcome, fault


class PlainResult(NamedTuple):
    """The counterpart of CheckResult, in plain values."""

    rows: list[Row]
    outcome: str
    fault: str
    end_at: int
    records: int


class Parts(NamedTuple):
    """Positions of the parts of one record."""

    total: int
    body: tuple[int, int]
    topic: tuple[int, int]
    properties: tuple[int, int]


def i1(data: bytes, at: int) -> int:
    return int(struct.unpack_from(">b", data, at)[0])


def i2(data: bytes, at: int) -> int:
    return int(struct.unpack_from(">h", data, at)[0])


def i4(data: bytes, at: int) -> int:
    return int(struct.unpack_from(">i", data, at)[0])


def i8(data: bytes, at: int) -> int:
    return int(struct.unpack_from(">q", data, at)[0])


def java_hash(text: str) -> int:
    """Return Java's String.hashCode, as docs/format.md §1 defines it."""
    h = 0
    b = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(b), 2):
        h = (31 * h + (b[i] << 8 | b[i + 1])) & 0xFFFFFFFF
    return h - (1 << 32) if h & 0x80000000 else h


def text_hash(data: bytes) -> int:
    """Return java_hash of UTF-8 bytes."""
    return java_hash(data.decode("utf-8", "replace"))


def masked_crc(data: bytes) -> int:
    return zlib.crc32(data) & 0x7FFFFFFF


def owner_of(topic: bytes, queue_id: int, shards: int) -> int:
    """Return a queue's shard: the masked CRC of topic and queue id, spread by murmur3's finaliser."""
    h = masked_crc(topic + struct.pack(">i", queue_id))
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return (h ^ h >> 16) % shards


def queue_hash(topic: bytes, queue_id: int) -> int:
    """Return the 64-bit FNV-1a hash of the topic's bytes, followed by the queue id as one symbol."""
    value = 0xCBF29CE484222325
    for symbol in (*topic, queue_id & 0xFFFFFFFF):
        value = (value ^ symbol) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def find_properties(data: bytes, at: int, length: int) -> dict[bytes, tuple[int, int]]:
    """Return the (position, length) of each property's value by its name, as docs/format.md §2 parses them."""
    found: dict[bytes, tuple[int, int]] = {}
    position, stop = at, at + length
    while position < stop:
        end = data.find(b"\x02", position, stop)
        end = stop if end < 0 else end
        if end - position >= 3:
            equals = data.find(b"\x01", position, stop)
            if position < equals < end - 1:
                found[data[position:equals]] = (equals + 1, end - equals - 1)
        position = end + 1
    return found


def parse_number(text: bytes, greatest: int) -> int | None:
    """Parse a decimal number as Java does; None where Java throws. *greatest* is the type's maximum."""
    if not re.fullmatch(rb"[+-]?[0-9]+", text):
        return None
    value = int(text)
    return value if -greatest - 1 <= value <= greatest else None


def wrap_i8(value: int) -> int:
    """Wrap *value* to a 64-bit two's complement integer."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def measure(data: bytes, at: int, end: int, *, base_offset: int, file_end: int | None) -> Parts:
    """Return the parts of the record at *at*; raise Stop if there is no record."""
    if at >= end:
        raise Stop("END")
    if file_end is not None and file_end - at < 8:
        raise Stop("BAD", "MAGIC")
    if end - at < 8:
        raise Stop("PARTIAL", "MAGIC")
    total, magic = i4(data, at), i4(data, at + 4)
    if magic == MAGIC_BLANK:
        if file_end is not None and at + total != file_end:
            raise Stop("BAD", "LENGTH")
        raise Stop("BLANK")
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise Stop("BAD", "MAGIC")
    if total < 91 or (file_end is not None and at + total > file_end):
        raise Stop("BAD", "LENGTH")
    if end - at < 40:
        raise Stop("PARTIAL", "LENGTH")
    if i8(data, at + 28) != base_offset + at:
        raise Stop("BAD", "POSITION")
    if at + total > end:
        raise Stop("PARTIAL", "LENGTH")
    return _parts_of(data[: at + total], at, total, magic)


def _parts_of(data: bytes, at: int, total: int, magic: int) -> Parts:
    """Check the lengths in the order of the fields; a sum that leaves the record is a fault."""
    sys_flag = i4(data, at + 36)
    hosts = (20 if sys_flag & 0x10 else 8) + (20 if sys_flag & 0x20 else 8)
    try:
        body_length = i4(data, at + 68 + hosts)
        body_at = at + 72 + hosts
        topic_at = body_at + body_length + (2 if magic == MAGIC_V2 else 1)
        if body_length < 0:
            raise Stop("BAD", "LENGTH")
        topic_length = i2(data, topic_at - 2) if magic == MAGIC_V2 else i1(data, topic_at - 1)
        if topic_length < 0:
            raise Stop("BAD", "LENGTH")
        properties_length = i2(data, topic_at + topic_length)
    except struct.error:
        raise Stop("BAD", "LENGTH") from None
    properties_at = topic_at + topic_length + 2
    if properties_length < 0 or properties_at + properties_length != at + total:
        raise Stop("BAD", "LENGTH")
    return Parts(total, (body_at, body_length), (topic_at, topic_length), (properties_at, properties_length))


def is_body_right(data: bytes, at: int, parts: Parts) -> bool:
    body_at, body_length = parts.body
    return body_length == 0 or masked_crc(data[body_at : body_at + body_length]) == i4(data, at + 8)


def is_property_crc_right(data: bytes, at: int, parts: Parts) -> bool:
    """Return True if the properties end in the right CRC of the record (docs/format.md §2: digits in reverse)."""
    tail = data[sum(parts.properties) - 20 : sum(parts.properties)]
    if parts.properties[1] < 20 or not tail.startswith(b"__CRC32#\x01") or not tail.endswith(b"\x02"):
        return True
    digits = str(masked_crc(data[at : at + parts.total - 20])).zfill(10)[::-1]
    return tail[9:19] == digits.encode()


def crc_fault(data: bytes, at: int, parts: Parts) -> int:
    """Return the fault of the record's CRCs: 4 for the body, 6 for the whole record, 0 for none."""
    if not is_body_right(data, at, parts):
        return 4
    return 0 if is_property_crc_right(data, at, parts) else 6


def _row(data: bytes, at: int, parts: Parts, base_offset: int) -> Row:
    sys_flag = i4(data, at + 36)
    found = find_properties(data, *parts.properties)
    row = {
        "physical_offset": base_offset + at,
        "queue_offset": i8(data, at + 20),
        "store_timestamp": i8(data, at + (68 if sys_flag & 0x10 else 56)),
        "topic_hash": queue_hash(data[parts.topic[0] : sum(parts.topic)], i4(data, at + 12)),
        "message_size": parts.total,
        "queue_id": i4(data, at + 12),
        "sys_flag": sys_flag,
        "body_at": parts.body[0],
        "body_length": parts.body[1],
        "topic_at": parts.topic[0],
        "topic_length": parts.topic[1],
        "properties_at": parts.properties[0],
        "properties_length": parts.properties[1],
        "fault": 0,
    }
    for prefix, name in PLACES:
        row[f"{prefix}_at"], row[f"{prefix}_length"] = found.get(name, (0, 0))
    return row | _numbers(data, row, found)


def _numbers(data: bytes, row: Row, found: dict[bytes, tuple[int, int]]) -> Row:
    """Return the row with tags_code, base_offset and batch_size (docs/format.md §2, §5)."""

    def number(name: bytes, greatest: int) -> int:
        at, length = found[name]
        value = parse_number(data[at : at + length], greatest)
        if value is None:
            raise Stop("BAD", "NUMBER")
        return value

    base, size = row["queue_offset"], 1
    if b"INNER_BASE" in found and b"INNER_NUM" in found:
        base, size = number(b"INNER_BASE", (1 << 63) - 1), number(b"INNER_NUM", 32767)
    code = 0
    if row["tags_length"]:
        code = text_hash(data[row["tags_at"] : row["tags_at"] + row["tags_length"]])
    topic = data[row["topic_at"] : row["topic_at"] + row["topic_length"]]
    if topic == b"SCHEDULE_TOPIC_XXXX" and b"DELAY" in found:
        level = min(number(b"DELAY", (1 << 31) - 1), 18)
        if level > 0:
            code = wrap_i8(row["store_timestamp"] + 1000 * DELAYS_S[level - 1])
    return {"tags_code": code, "base_offset": base, "batch_size": size}


def walk(
    data: bytes,
    *,
    base_offset: int,
    start: int = 0,
    end: int | None = None,
    file_end: int | None = None,
    crc: str = "STOPS",
    shard: int = 0,
    shards: int = 1,
    light: bool = False,
    max_rows: int = 1 << 30,
) -> PlainResult:
    """Walk data[start:end] as Checker.check does; crc: OFF, STOPS or MARKS."""
    rows: list[Row] = []
    at, records = start, 0
    stop = len(data) if end is None else end
    try:
        while True:
            parts = measure(data, at, stop, base_offset=base_offset, file_end=file_end)
            if len(rows) == max_rows:
                raise Stop("FULL")
            topic = data[parts.topic[0] : sum(parts.topic)]
            owned = shards == 1 or owner_of(topic, i4(data, at + 12), shards) == shard
            if owned or (light and b"INNER_MULTI_DISPATCH" in find_properties(data, *parts.properties)):
                fault = crc_fault(data, at, parts) if crc != "OFF" else 0
                if fault and crc == "STOPS":
                    raise Stop("BAD", {4: "BODY_CRC", 6: "PROPERTY_CRC"}[fault])
                rows.append(_row(data, at, parts, base_offset) | {"fault": fault, "owned": int(owned)})
            at += parts.total
            records += 1
    except Stop as why:
        return PlainResult(rows, why.outcome, why.fault, at, records)


def find_next(
    data: bytes, *, base_offset: int, start: int = 0, end: int | None = None, file_end: int | None = None
) -> int | None:
    """Try every position; return the first whole record of right lengths and CRC, or the file's blank record."""
    stop = len(data) if end is None else end
    for at in range(start, stop):
        try:
            parts = measure(data, at, stop, base_offset=base_offset, file_end=file_end)
        except Stop as why:
            if why.outcome == "BLANK" and file_end is not None:
                return at
            continue
        if not crc_fault(data, at, parts):
            return at
    return None
