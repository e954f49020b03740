"""BatchJournal: which batches were about to be written, so that recovery keeps no part of a torn one.

A record tells by its lengths and its body's CRC whether it is whole, but not where its batch begins or ends, and
nothing covers its properties. So each batch's stretch and CRC are written here before the log's bytes are, and synced
before them. A ring of 32-byte entries, big-endian, behind a head that names the run of the writer they belong to:

    i64 sequence number, from 1 · i64 start · i64 end · i32 CRC-32 of the log's bytes · i32 CRC-32 of these 28 bytes

Above the durable floor a batch whose bytes do not have its CRC is the torn end of the log.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import NamedTuple

from isal.isal_zlib import crc32

from tidemark.format.dispatch_request import U8Array
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.storage import Storage

_BODY = struct.Struct(">qqqI")
_CHECK = struct.Struct(">I")
ENTRY_SIZE = _BODY.size + _CHECK.size
ENTRIES = 65_536
_HEAD = struct.Struct(">QQ16x")  # inode and time of the `abort` file, which a broker would make anew
assert ENTRY_SIZE == _HEAD.size == 32


class Stretch(NamedTuple):
    """One batch's bytes in the log. end: exclusive."""

    start: int
    end: int
    crc: int


def owner_of(abort: Path) -> tuple[int, int]:
    """Which run of a writer the `abort` file belongs to; (0, 0) without one."""
    try:
        status = abort.stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_mtime_ns


class BatchJournal:
    """The journal of a running writer. `write` and `forget` are the appender's, `flush` is the flusher's."""

    def __init__(self, path: Path, storage: Storage, owner: tuple[int, int]) -> None:
        self._storage = storage
        self._sequence = 0
        storage.unlink(path)
        self._descriptor = storage.create(path, 0)
        self._storage.pwrite(self._descriptor, _HEAD.pack(*owner) + bytes(ENTRIES * ENTRY_SIZE), 0)
        self.flush()

    def write(self, stretches: list[Stretch]) -> None:
        """Tell what will be written now.

        raises DiskFullError or OSError when it cannot be told: `forget` it
        """
        first = self._sequence
        self._sequence += len(stretches)
        self._put(first, [_encode(first + i + 1, stretch) for i, stretch in enumerate(stretches)])

    def forget(self, count: int) -> None:
        """The last *count* were not written after all; durable when this returns."""
        self._sequence -= count
        self._put(self._sequence, [bytes(ENTRY_SIZE)] * count)
        self.flush()

    def _put(self, sequence: int, entries: list[bytes]) -> None:
        first = sequence % ENTRIES
        until_edge = ENTRIES - first
        for at, part in ((first, entries[:until_edge]), (0, entries[until_edge:])):
            if part:
                self._storage.pwrite(self._descriptor, b"".join(part), _HEAD.size + at * ENTRY_SIZE)

    def flush(self) -> None:
        """Make it durable."""
        self._storage.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _encode(sequence: int, stretch: Stretch) -> bytes:
    body = _BODY.pack(sequence, *stretch)
    return body + _CHECK.pack(crc32(body))


def stretch_of(start: int, data: U8Array) -> Stretch:
    """The stretch that *data*, to be written at *start*, makes."""
    return Stretch(start, start + data.size, crc32(data))


def read_journal(path: Path, owner: tuple[int, int]) -> list[Stretch]:
    """What the journal of that run tells, ascending; nothing when it is another's, or missing."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    if len(data) < _HEAD.size or owner == (0, 0) or _HEAD.unpack_from(data) != owner:
        return []
    found: dict[int, Stretch] = {}
    for at in range(_HEAD.size, len(data) - ENTRY_SIZE + 1, ENTRY_SIZE):
        sequence, *stretch = _BODY.unpack_from(data, at)
        if sequence and _CHECK.unpack_from(data, at + _BODY.size)[0] == crc32(data[at : at + _BODY.size]):
            found[sequence] = Stretch(*stretch)
    kept: list[Stretch] = []
    for sequence in sorted(found, reverse=True):
        if not kept or found[sequence].end <= kept[-1].start:
            kept.append(found[sequence])
    return kept[::-1]


def first_torn(log: MappedFileQueue, stretches: list[Stretch], floor: int) -> int | None:
    """Where the first batch at or above *floor* starts whose bytes are not all there; None when all are."""
    for start, end, crc in stretches:
        if start >= floor and all(crc32(log.read(start, end - start)) != crc for _ in range(2)):  # wrong twice
            return start
    return None
