"""`tidemark/writer/batches`: the batches about to be written, so that no part of a torn batch is kept.

A record's lengths and body CRC show whether it is whole, but not where its batch begins or ends, and no checksum covers
its properties. Therefore the range and CRC of each batch are written here before the bytes of the log, and are synced
before the batch counts as durable. The file is a ring of 32-byte entries, big-endian:

    i64 sequence number, from 1 · i64 start · i64 end · i32 CRC-32 of the log's bytes · i32 CRC-32 of these 28 bytes

after a head of 32 bytes: the 16 bytes that the writer also wrote to `abort` · i64 the log's end when that run of the
writer began · i32 CRC-32 of these 24 bytes · 4 zero bytes. A broker that has used the store since has replaced `abort`:
then the journal is ignored.

Above the durable floor, only whole batches in an unbroken sequence of the journal belong to the log.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import NamedTuple

from isal.isal_zlib import crc32

from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage

_BODY = struct.Struct(">qqqI")
_CHECK = struct.Struct(">I")
_HEAD = struct.Struct(">16sq")
ENTRY_SIZE = _BODY.size + _CHECK.size
HEAD_SIZE = 32
TOKEN_SIZE = 16
ENTRIES = 65_536
assert ENTRY_SIZE == 32


class BatchRange(NamedTuple):
    """One batch's bytes in the log. end: exclusive."""

    start: int
    end: int
    crc: int


class Journal(NamedTuple):
    """The journal of one run of a writer. stretches: ascending; start: the log's end when the run began."""

    start: int
    stretches: list[BatchRange]
    has_wrapped: bool  # its first entries were overwritten


def new_token() -> bytes:
    """Return a random token for one run of a writer."""
    return os.urandom(TOKEN_SIZE)


def encode_abort(token: bytes) -> bytes:
    """Return the content of `abort`: the process id, as a broker writes it, and the run's token."""
    return b"%d %s" % (os.getpid(), token.hex().encode())


def _token_of(abort: Path) -> bytes | None:
    """Return the token in `abort`; None if the file is missing or a broker wrote it."""
    try:
        return bytes.fromhex(abort.read_text("ascii").split()[1])
    except (FileNotFoundError, IndexError, ValueError):
        return None


def encode_head(token: bytes, start: int) -> bytes:
    """Encode the journal's head."""
    head = _HEAD.pack(token, start)
    return (head + _CHECK.pack(crc32(head))).ljust(HEAD_SIZE, b"\0")


def encode_entry(sequence: int, stretch: BatchRange) -> bytes:
    """Encode one entry."""
    body = _BODY.pack(sequence, *stretch)
    return body + _CHECK.pack(crc32(body))


def read_journal(path: Path, abort: Path) -> Journal | None:
    """Return the journal of the run that created *abort*; None if it is of another run, torn, or missing."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    token = _token_of(abort)
    if len(data) < HEAD_SIZE or token is None or _HEAD.unpack_from(data)[0] != token:
        return None
    if _CHECK.unpack_from(data, _HEAD.size)[0] != crc32(data[: _HEAD.size]):
        return None
    found = dict(_entries(data))
    kept: list[BatchRange] = []
    for sequence in sorted(found, reverse=True):
        if not kept or found[sequence].end <= kept[-1].start:
            kept.append(found[sequence])
    return Journal(_HEAD.unpack_from(data)[1], kept[::-1], max(found, default=0) > ENTRIES)


def _entries(data: bytes) -> list[tuple[int, BatchRange]]:
    """Return (sequence number, stretch) of every valid entry, unsorted."""
    entries = []
    for at in range(HEAD_SIZE, len(data) - ENTRY_SIZE + 1, ENTRY_SIZE):
        sequence, *stretch = _BODY.unpack_from(data, at)
        if sequence and _CHECK.unpack_from(data, at + _BODY.size)[0] == crc32(data[at : at + _BODY.size]):
            entries.append((sequence, BatchRange(*stretch)))
    return entries


def journaled_end(paths: StorePaths, log: MappedFileQueue, floor: int) -> int:
    """Return the maximum end of the log: the end of the unbroken sequence of whole batches after *floor*.

    Without a journal, return the end of the log's files.
    """
    journal = read_journal(paths.writer / "batches", paths.abort)
    return log.capacity_end if journal is None else min(_end_of_row(journal, log, floor), log.capacity_end)


def sync_journal(paths: StorePaths, storage: Storage) -> None:
    """Make a killed writer's journal durable. FlushFailedError: the sync failed."""
    try:
        descriptor = storage.open(paths.writer / "batches")
    except FileNotFoundError:
        return
    try:
        storage.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def _end_of_row(journal: Journal, log: MappedFileQueue, floor: int) -> int:
    end = max(floor, journal.start)
    if journal.has_wrapped and journal.stretches:  # overwritten entries are unknown: trust the records there
        end = max(end, journal.stretches[0].start)
    for stretch in journal.stretches:
        if stretch.end <= end:
            continue
        follows = stretch.start <= end or stretch.start == log.file_start(end) + log.file_size  # after a roll
        if not follows or (stretch.start >= floor and not _is_whole(log, stretch)):
            break
        end = stretch.end
    return end


def _is_whole(log: MappedFileQueue, stretch: BatchRange) -> bool:
    """Return True if the log's bytes match the CRC. A mismatch is read twice, in case the first read failed."""
    return any(crc32(log.read(stretch.start, stretch.end - stretch.start)) == stretch.crc for _ in range(2))
