"""The bytes of a record that some check covers, from the field table of the format (docs/format.md §2).

RocketMQ's format has a checksum only for the body. Other fields are covered by consistency: lengths with each other,
the
position with the place, the magic with its value. The rest may be anything: a record whose queue offset was changed on
disk *is* a record with that queue offset, for a broker as for Tidemark.
"""

from __future__ import annotations

import itertools
import re
import struct
from typing import NamedTuple

from tidemark.format.properties import decode_properties
from tidemark.format.record import HEAD, MIN_RECORD_SIZE
from tidemark.format.sys_flag import SysFlag

CHECKED = frozenset(
    {"total_size", "magic", "body_crc", "physical_offset", "body_length", "body", "topic_length", "properties_length"}
)
UNCHECKED = frozenset(
    {
        "queue_id",
        "flag",
        "queue_offset",
        "born_timestamp",
        "born_host",
        "store_timestamp",
        "store_host",
        "reconsume_times",
        "prepared_transaction_offset",
        "topic",
        "properties",
        "sys_flag",  # except for the two bits of the hosts' sizes, which shift every length
    }
)
# Detected changes of these: an impossible queue offset (see `is_possible`), and INNER_NUM or INNER_BASE in the
# properties of an inner batch that is no longer a number.
_HOST_BITS = int(SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6)


class Field(NamedTuple):
    """A part of one record, [start, end) in bytes from the record's start."""

    name: str
    start: int
    end: int


def fields_of(record: bytes) -> list[Field]:
    """Return all fields of a V1 record with IPv4 hosts, without a gap."""
    assert HEAD.fields is not None
    fields = [Field(name, at, at + kind.itemsize) for name, (kind, at) in ((n, f[:2]) for n, f in HEAD.fields.items())]
    (body_length,) = struct.unpack_from(">i", record, fields[-1].start)
    at = HEAD.itemsize
    fields.append(Field("body", at, at := at + body_length))
    topic_length = record[at]
    fields.append(Field("topic_length", at, at := at + 1))
    fields.append(Field("topic", at, at := at + topic_length))
    fields.append(Field("properties_length", at, at := at + 2))
    fields.append(Field("properties", at, len(record)))
    assert {field.name for field in fields} == CHECKED | UNCHECKED
    assert all(one.end == other.start for one, other in itertools.pairwise(fields))
    return fields


def is_checked(record: bytes, at: int, bit: int, *, before: int | None) -> bool:
    """Return True if a flip of this bit (of 8) of byte *at* must be detected.

    before: physical offset of the queue's previous record; None for its first
    """
    fields = {field.name: field for field in fields_of(record)}
    field = next(field for field in fields.values() if field.start <= at < field.end)
    if field.name == "sys_flag":
        return bool((1 << bit << 8 * (field.end - 1 - at)) & _HOST_BITS)
    flipped = record[:at] + bytes([record[at] ^ 1 << bit]) + record[at + 1 :]
    if field.name in ("queue_offset", "properties"):
        if struct.unpack_from(">i", record, fields["sys_flag"].start)[0] & SysFlag.INNER_BATCH:
            return not _has_inner_numbers(flipped[fields["properties"].start :])
        return field.name == "queue_offset" and not _is_possible(record, flipped, before)
    return field.name in CHECKED


def _is_possible(record: bytes, flipped: bytes, before: int | None) -> bool:
    """Return True if the flipped queue offset allows for enough records between this one and the previous one."""
    (was, place), (now,) = struct.unpack_from(">qq", record, 20), struct.unpack_from(">q", flipped, 20)
    if not 0 <= now <= 1 << 58:
        return False
    return before is None or now - was <= (place - before) // MIN_RECORD_SIZE


def _has_inner_numbers(properties: bytes) -> bool:
    """Return True if both are decimal, or one is missing: then the record counts as a single message."""
    entries = decode_properties(properties)
    if not {"INNER_NUM", "INNER_BASE"} <= entries.keys():
        return True
    number, base = entries["INNER_NUM"], entries["INNER_BASE"]
    return all(re.fullmatch(r"[+-]?[0-9]+", text) for text in (number, base)) and int(number) < 1 << 15
