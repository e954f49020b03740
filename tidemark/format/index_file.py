"""The key index file (docs/format.md §6): a header, a table of slots, a table of entries chained by slot.

40 bytes header · 4 bytes per slot · 20 bytes per entry. Entry 0 is never used.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import CorruptStoreError
from tidemark.format.dispatch_request import RequestArray, U8Array
from tidemark.format.index_layout import ENTRY_SIZE, HEADER_SIZE, SLOT_SIZE
from tidemark.format.kernels import chains as chains_kernel
from tidemark.format.kernels import index as kernel
from tidemark.format.kernels import slots as slots_kernel
from tidemark.format.primitives import java_abs, java_hash

DEFAULT_SLOTS = 5_000_000
DEFAULT_ENTRIES = 20_000_000
ENTRIES_A_SLOT = DEFAULT_ENTRIES // DEFAULT_SLOTS

_FEW_KEYS = 16  # up to here, numpy's sort costs more than the rest of making the entries
_KEYS_A_RECORD = 2  # UNIQ_KEY and one more; with more keys, a part's keys are hashed twice
_HEADER, _ENTRY = struct.Struct(">qqqqii"), struct.Struct(">iqii")
ANY_TIME = -(1 << 62)  # epoch milliseconds, before every entry
_GAP_SLOTS = 512  # writing fewer unchanged slots costs less than another write
_MOST_WRITTEN_BYTES, _MOST_STRETCHES = 256 << 10, 4096  # per call: fits into a core's cache


class Header(NamedTuple):
    """Values of an index file's header."""

    begin_timestamp: int = 0
    end_timestamp: int = 0
    begin_physical_offset: int = 0
    end_physical_offset: int = 0
    hash_slot_count: int = 0
    index_count: int = 1


def file_size(slots: int, entries: int) -> int:
    """Return the size of an index file in bytes."""
    return HEADER_SIZE + SLOT_SIZE * slots + ENTRY_SIZE * entries


def slots_of_size(size: int) -> int | None:
    """Return the slots of an index file of *size* bytes with RocketMQ's ratio of entries to slots; otherwise None."""
    slots, rest = divmod(size - HEADER_SIZE, SLOT_SIZE + ENTRIES_A_SLOT * ENTRY_SIZE)
    return slots if rest == 0 and slots > 0 else None


def entry_at(slots: int, number: int) -> int:
    """Return the position of entry *number* in bytes."""
    return HEADER_SIZE + SLOT_SIZE * slots + ENTRY_SIZE * number


def slot_at(number: int) -> int:
    """Return the position of slot *number* in bytes."""
    return HEADER_SIZE + SLOT_SIZE * number


def encode_header(header: Header) -> bytes:
    """Return the 40 bytes of the header."""
    return _HEADER.pack(*header)


def decode_header(data: bytes | memoryview) -> Header:
    """Decode the first 40 bytes of *data*. Raises CorruptStoreError if there are fewer."""
    if len(data) < HEADER_SIZE:
        raise CorruptStoreError(f"the index file has {len(data)} bytes, fewer than its header of {HEADER_SIZE}")
    begin_ms, end_ms, begin_offset, end_offset, used_slots, index_count = _HEADER.unpack_from(data)
    return Header(begin_ms, end_ms, begin_offset, end_offset, used_slots, max(index_count, 1))


def key_hash(topic: str, key: str) -> int:
    """Return the non-negative hash in index entries for *key* of *topic*."""
    return max(java_abs(java_hash(f"{topic}#{key}")), 0)


def hash_keys(
    buffer: U8Array, requests: RequestArray
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys of *requests* that belong into the index, in order: hashes, physical offsets, store timestamps.

    UNIQ_KEY first, then each piece of KEYS. Rolled back records have none (docs/format.md §6).
    """
    count, room = _KEYS_A_RECORD * len(requests), -1
    while count > room:
        room = count
        hashes, places, times = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int64)
        count = kernel.hash_keys(buffer, requests, hashes, places, times)
    return hashes[:count], places[:count], times[:count]


class NewEntries(NamedTuple):
    """Additions to one file for a run of keys: bytes of the entries, slots to set, and the new header."""

    entries: memoryview
    slot_numbers: NDArray[np.int32]  # ascending, distinct
    slot_values: NDArray[np.int32]
    header: Header


def make_entries(
    header: Header,
    slots: U8Array,
    *,
    hashes: NDArray[np.int32],
    physical_offsets: NDArray[np.int64],
    store_timestamps: NDArray[np.int64],
) -> NewEntries:
    """Append a run of keys, at least one, to a file with this *header* and slot table (uint8, 4 bytes per slot).

    The caller ensures header.index_count + len(hashes) ≤ the file's number of entries (docs/format.md §6).
    """
    count = len(hashes)
    n_slots = slots.size // SLOT_SIZE
    if count <= _FEW_KEYS:
        order = np.empty(count, np.int64)
        kernel.order_by_slot(hashes, n_slots, order)
    else:
        order = (hashes % n_slots).argsort(kind="stable")
    out = np.empty(ENTRY_SIZE * count, np.uint8)
    numbers, values = np.empty(count, np.int32), np.empty(count, np.int32)
    fresh, changed = kernel.make_entries(
        hashes,
        physical_offsets,
        store_timestamps,
        order,
        slots,
        header.index_count,
        header.begin_timestamp,
        out,
        numbers,
        values,
    )
    first = header.index_count <= 1
    return NewEntries(
        entries=out.data,
        slot_numbers=numbers[:changed],
        slot_values=values[:changed],
        header=Header(
            begin_timestamp=int(store_timestamps[0]) if first else header.begin_timestamp,
            end_timestamp=int(store_timestamps[-1]),
            begin_physical_offset=int(physical_offsets[0]) if first else header.begin_physical_offset,
            end_physical_offset=int(physical_offsets[-1]),
            hash_slot_count=header.hash_slot_count + int(fresh),
            index_count=header.index_count + count,
        ),
    )


class SlotStretches(NamedTuple):
    """Slots to set, grouped into one write per stretch."""

    data: memoryview
    stretches: list[list[int]]  # number of the first slot; begin and end in *data*
    done: int  # number of slots in these and earlier stretches


def slot_stretches(slots: U8Array, numbers: NDArray[np.int32], values: NDArray[np.int32], first: int) -> SlotStretches:
    """Return the bytes to write so that slots *numbers* (ascending, distinct), from index *first*, hold *values*.

    slots  the current table. Slots close to each other form one stretch, including the slots between them
    """
    left = len(numbers) - first
    out = np.empty(min(_MOST_WRITTEN_BYTES, slots.size, SLOT_SIZE * (1 + _GAP_SLOTS) * left), np.uint8)
    stretches = np.empty((min(_MOST_STRETCHES, left), 3), np.int64)
    count, done = slots_kernel.make_stretches(slots, numbers, values, first, _GAP_SLOTS, out, stretches)
    return SlotStretches(out.data, stretches[:count].tolist(), int(done))


def find_entries(
    slots: U8Array, entries: U8Array, header: Header, *, key_hash: int, begin_ms: int, end_ms: int, limit: int
) -> list[int]:
    """Return physical offsets of *key_hash*, newest first, at most *limit*; begin_ms ≤ time ≤ end_ms (format.md §14).

    slots, entries: uint8, the two tables; a chain that leaves the entries ends there. These are hash matches only: the
    caller compares topic and key of the records.
    """
    out = np.empty(limit, np.int64)
    found = kernel.find_entries(
        slots, entries, key_hash, header.index_count, header.begin_timestamp, begin_ms, end_ms, out
    )
    return [int(physical_offset) for physical_offset in out[:found]]


def find_broken_chain(slots: U8Array, entries: U8Array, header: Header) -> tuple[int | None, int | None]:
    """Return the number of the first entry and of the first slot that violate the chains of format.md §6, or None.

    slots, entries: uint8, the two tables. If the header counts more entries than exist, only existing ones are checked.
    """
    last = np.zeros(slots.size // SLOT_SIZE, np.int32)
    count = min(header.index_count, entries.size // ENTRY_SIZE)
    entry, slot = chains_kernel.check_chains(slots, entries, count, last)
    return (int(entry) or None), (None if slot < 0 else int(slot))


def oldest_entries(
    slots: U8Array,
    entries: U8Array,
    header: Header,
    *,
    key_hash: int,
    after: int,
    below: int,
    limit: int,
    least_ms: int = ANY_TIME,
) -> tuple[NDArray[np.int64], bool]:
    """Return at most *limit* distinct physical offsets in (after, below), ascending, and whether there are more.

    slots, entries  the tables, uint8; entries from entry 0 on
    least_ms        omit entries that are certainly older: an entry's time is at most one second early

    These are hash matches only. Unlike a broker's lookup this ignores the header's number of entries, which a writer
    updates last.
    """
    ring = np.empty(limit, np.int64)
    n = kernel.oldest_entries(slots, entries, key_hash, header.begin_timestamp, least_ms, after, below, ring)
    found = ring[: min(n, limit)]
    return found if n <= 1 else np.unique(found), bool(n > limit)


def oldest_entries_plain(
    slots: U8Array, entries: U8Array, header: Header, *, key_hash: int, after: int, below: int, least_ms: int
) -> list[int]:
    """Return the result of `oldest_entries` without a limit, entry by entry: its plain twin."""
    hits: set[int] = set()
    heads = slots[: len(slots) // SLOT_SIZE * SLOT_SIZE].view(">i4")
    number = int(heads[key_hash % len(heads)])
    while 0 < number < len(entries) // ENTRY_SIZE:
        entry_hash, physical_offset, difference, previous = _ENTRY.unpack_from(entries.data, ENTRY_SIZE * number)
        latest_ms = header.begin_timestamp + difference * 1000 + 1000
        if entry_hash == key_hash and after < physical_offset < below and latest_ms > least_ms:
            hits.add(physical_offset)
        if previous >= number:
            break
        number = previous
    return sorted(hits)


def find_cached(
    files: NDArray[np.int64], *, key_hash: int, after: int, below: int, least_ms: int, most: int
) -> list[int] | None:
    """Return the distinct physical offsets that `oldest_entries` finds in several files, ascending.

    Reads only the page cache, never waits for a disk. Returns None if that is not enough, or if there are more than
    *most* offsets, or entries in a chain.

    files  a row for each file: descriptor, number of slots, number of entries
    """
    out, scratch = np.empty(most, np.int64), np.empty(HEADER_SIZE, np.uint8)
    n = chains_kernel.find_cached(files, key_hash, after, below, least_ms, scratch, out)
    if n == chains_kernel.NOT_CACHED:
        return None
    return sorted(set(out[:n].tolist())) if n > 1 else out[:n].tolist()
