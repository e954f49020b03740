"""Reading the key index in the order of the log, page by page: chains lead the other way (docs/format.md §6)."""

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
    """(at most *limit* physical offsets in (after, below), ascending, each once; whether there are more).

    slots, entries  the tables, uint8; entries from entry 0 on
    least_ms        leave out entries that are older for certain: an entry's time is never more than a second early
    Hash matches only. Unlike a broker's lookup this does not ask the header how many entries there are: a writer moves
    it last.
    """
    ring = np.empty(limit, np.int64)
    n = kernel.oldest_entries(slots, entries, key_hash, header.begin_timestamp, least_ms, after, below, ring)
    return np.unique(ring[: min(n, limit)]), bool(n > limit)


def oldest_entries_plain(
    slots: U8Array, entries: U8Array, header: Header, *, key_hash: int, after: int, below: int, least_ms: int
) -> list[int]:
    """The same without a limit, entry by entry: the twin."""
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
