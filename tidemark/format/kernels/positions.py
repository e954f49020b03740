"""Byte positions of fields for the compiled loops, from the formats' field tables.

Positions in a record's head are those with two IPv4 hosts. A field after an IPv6 host is HOST_V6_EXTRA bytes later for
each such host.
"""

from __future__ import annotations

import numpy as np

from tidemark.format import consume_queue, elements
from tidemark.format.host import IPV4_HOST_SIZE, IPV6_HOST_SIZE
from tidemark.format.index_layout import ENTRY, HEADER, SLOT_SIZE
from tidemark.format.record import HEAD
from tidemark.format.sys_flag import SysFlag


def positions(layout: np.dtype[np.void], *names: str) -> list[int]:
    """Return the first byte of each of the fields *names*."""
    assert layout.fields is not None, "a layout has fields"
    return [int(layout.fields[name][1]) for name in names]


MAGIC, BODY_CRC, QUEUE_ID, FLAG, QUEUE_OFFSET, PHYSICAL_OFFSET, SYS_FLAG = positions(
    HEAD, "magic", "body_crc", "queue_id", "flag", "queue_offset", "physical_offset", "sys_flag"
)
BORN_TIMESTAMP, BORN_HOST, STORE_TIMESTAMP, STORE_HOST, RECONSUME_TIMES, TRANSACTION_OFFSET, BODY_LENGTH = positions(
    HEAD,
    "born_timestamp",
    "born_host",
    "store_timestamp",
    "store_host",
    "reconsume_times",
    "prepared_transaction_offset",
    "body_length",
)
HEAD_SIZE = HEAD.itemsize
BORN_V6, STORE_V6 = int(SysFlag.BORN_HOST_V6), int(SysFlag.STORE_HOST_V6)
HOST_V6_EXTRA = IPV6_HOST_SIZE - IPV4_HOST_SIZE

ELEMENT_FLAG, ELEMENT_BODY_LENGTH, ELEMENT_BODY = elements.FLAG_AT, elements.BODY_LENGTH_AT, elements.ELEMENT_HEAD.size
ELEMENT_OVERHEAD = elements.ELEMENT_OVERHEAD

ENTRY_SIZE = ENTRY.itemsize
ENTRY_HASH, ENTRY_OFFSET, ENTRY_TIME, ENTRY_PREVIOUS = positions(
    ENTRY, "key_hash", "physical_offset", "time_difference", "previous_entry"
)
SLOT = SLOT_SIZE
(HEADER_BEGIN_TIMESTAMP,) = positions(HEADER, "begin_timestamp")

# both queue types begin their units with the first two
UNIT_PHYSICAL_OFFSET, UNIT_MESSAGE_SIZE, UNIT_TAGS_CODE = positions(
    consume_queue.UNIT, "physical_offset", "message_size", "tags_code"
)
UNIT_SIZE = consume_queue.UNIT_SIZE
