"""Reading of the key index in log order, page by page, although chains lead from new to old (docs/format.md §6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidemark.format.dispatch_request import U8Array
from tidemark.format.index_file import ENTRY, SLOT_SIZE, Header
from tidemark.format.kernels import keys as kernel


def oldest_entries(
    slots: U8Array,
    entries: U8Array,
    header: Header,
    *,
    key_hash: int,
    after: int,
    below: int,
    limit: int,
    least_ms: int = -(1 << 62),
) -> tuple[NDArray[np.int64], bool]:
    """Return at most *limit* distinct physical offsets in (after, below), ascending, and whether there are more.

    slots, entries  the tables, uint8; entries from entry 0 on
    least_ms        omit entries that are certainly older: an entry's time is at most one second early

    These are hash matches only. Unlike a broker's lookup this ignores the header's number of entries, which a writer
    updates last.
    """
    ring = np.empty(limit, np.int64)
    n = kernel.oldest_entries(slots, entries, key_hash, header.begin_timestamp, least_ms, after, below, ring)
    return np.unique(ring[: min(n, limit)]), bool(n > limit)


def oldest_entries_plain(
    slots: U8Array, entries: U8Array, header: Header, *, key_hash: int, after: int, below: int, least_ms: int
) -> list[int]:
    """Return the result of `oldest_entries` without a limit, entry by entry: its plain twin."""
    table = entries[: len(entries) // ENTRY.itemsize * ENTRY.itemsize].view(ENTRY)
    heads = slots[: len(slots) // SLOT_SIZE * SLOT_SIZE].view(">i4")
    number = int(heads[key_hash % len(heads)])
    hits: set[int] = set()
    while 0 < number < len(table):
        entry = table[number]
        timestamp = header.begin_timestamp + int(entry["time_difference"]) * 1000
        if entry["key_hash"] == key_hash and after < entry["physical_offset"] < below and timestamp + 1000 > least_ms:
            hits.add(int(entry["physical_offset"]))
        if entry["previous_entry"] >= number:
            break
        number = int(entry["previous_entry"])
    return sorted(hits)
