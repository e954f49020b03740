"""Plain builders of records, wire batches and small logs, from struct and zlib alone.

The bytes do not come from Tidemark's code, so tests may compare its results with them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.dispatch_request import U8Array

MAGIC_V1, MAGIC_V2, MAGIC_BLANK = -626843481, -626843477, -875286124
BORN_MS, STORE_MS = 1_700_000_000_000, 1_700_000_000_123
BORN_HOST = bytes([127, 0, 0, 1]) + struct.pack(">i", 54321)
STORE_HOST = bytes([192, 168, 7, 65]) + struct.pack(">i", 10911)
BORN_HOST_V6 = bytes(15) + b"\x01" + struct.pack(">i", 54321)
STORE_HOST_V6 = bytes.fromhex("105000000000000000050600300c326b") + struct.pack(">i", 10911)
BODY_OF_CRC_0 = bytes.fromhex("9d0ad96d")  # a body whose zlib.crc32 is 0


def properties(entries: Mapping[str, str]) -> bytes:
    """Encode the entries, each as ``name U+0001 value U+0002``."""
    return "".join(f"{name}\x01{value}\x02" for name, value in entries.items()).encode()


def record_bytes(
    *,
    topic: bytes = b"TopicTest",
    body: bytes = b"Hello",
    properties: bytes = b"",
    queue_id: int = 0,
    queue_offset: int = 0,
    physical_offset: int = 0,
    flag: int = 0,
    sys_flag: int = 0,
    born_timestamp: int = BORN_MS,
    store_timestamp: int = STORE_MS,
    born_host: bytes = BORN_HOST,
    store_host: bytes = STORE_HOST,
    reconsume_times: int = 0,
    prepared_transaction_offset: int = 0,
    body_crc: int | None = None,
    magic: int = MAGIC_V1,
    property_crc: bool = False,
) -> bytes:
    """Return one record (docs/format.md §2).

    The host bits of sys_flag follow the hosts. body_crc None: computed.
    property_crc: the properties end with the whole record's CRC (docs/format.md §2).
    """
    sys_flag |= (0x10 if len(born_host) == 20 else 0) | (0x20 if len(store_host) == 20 else 0)
    crc = zlib.crc32(body) & 0x7FFFFFFF if body_crc is None else body_crc
    rest = b"".join(
        (
            struct.pack(
                ">iiiiqqiq", magic, crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born_timestamp
            ),
            born_host,
            struct.pack(">q", store_timestamp),
            store_host,
            struct.pack(">iqi", reconsume_times, prepared_transaction_offset, len(body)),
            body,
            struct.pack(">h" if magic == MAGIC_V2 else ">B", len(topic)),
            topic,
            struct.pack(">h", len(properties) + 20 * property_crc),
            properties,
        )
    )
    record = struct.pack(">i", 4 + len(rest) + 20 * property_crc) + rest
    return record + property_crc_bytes(record) if property_crc else record


def property_crc_bytes(data: bytes) -> bytes:
    """Return the 20 bytes that end the properties of a record with the bytes *data* (docs/format.md §2)."""
    digits = f"{zlib.crc32(data) & 0x7FFFFFFF:010d}"
    return b"__CRC32#\x01" + digits[::-1].encode() + b"\x02"


def blank_bytes(bytes_left: int) -> bytes:
    """Return the 8 bytes that end a file which has *bytes_left* bytes left (docs/format.md §2)."""
    return struct.pack(">ii", bytes_left, MAGIC_BLANK)


def row_of_records(fields: Iterable[Mapping[str, Any]], *, base_offset: int = 0) -> bytes:
    """Return contiguous records, the first at *base_offset*, each with its own PHYSICALOFFSET."""
    row = b""
    for one in fields:
        row += record_bytes(**{"physical_offset": base_offset + len(row), **one})
    return row


def buffer_of_records(fields: Iterable[Mapping[str, Any]]) -> tuple[U8Array, NDArray[np.int64], NDArray[np.int64]]:
    """Return the bytes, positions and sizes of contiguous records, each with its own PHYSICALOFFSET."""
    row, places = b"", [0]
    for one in fields:
        row += record_bytes(**{**one, "physical_offset": len(row)})
        places.append(len(row))
    edges = np.array(places, np.int64)
    return np.frombuffer(row, np.uint8).copy(), edges[:-1], np.diff(edges)


class Placed(NamedTuple):
    """A record and its position in a log."""

    physical_offset: int
    data: bytes


def write_log(
    folder: Path, file_size: int, fields: Iterable[Mapping[str, Any]], *, first_offset: int = 0
) -> list[Placed]:
    """Write the files of a CommitLog with these records, rolled with blank records by the rule of docs/format.md §2."""
    folder.mkdir(parents=True, exist_ok=True)
    placed: list[Placed] = []
    start, content = first_offset, b""

    def finish() -> None:
        (folder / f"{start:020d}").write_bytes(content.ljust(file_size, b"\0"))

    for one in fields:
        data = record_bytes(**{**one, "physical_offset": start + len(content)})
        if len(data) + 8 > file_size - len(content):
            content += blank_bytes(file_size - len(content))
            finish()
            start, content = start + file_size, b""
            data = record_bytes(**{**one, "physical_offset": start})
        placed.append(Placed(start + len(content), data))
        content += data
    finish()
    return placed


def wire_element(body: bytes, properties: bytes = b"", flag: int = 0) -> bytes:
    """Return one element of a wire batch (docs/format.md §3)."""
    size = 22 + len(body) + len(properties)
    head = struct.pack(">iiiii", size, 0, 0, flag, len(body))
    return head + body + struct.pack(">h", len(properties)) + properties


def wire_batch(*elements: tuple[bytes, bytes, int]) -> bytes:
    """Return a wire batch of (body, properties, flag) elements."""
    return b"".join(wire_element(*element) for element in elements)
