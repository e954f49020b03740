"""The key index in compiled loops: hashes of keys, and entries of a file (docs/format.md §6).

Twins: `tidemark.format.index_file`.
"""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.integers import get_i4, get_i8, put_i4, put_i8
from tidemark.format.kernels.positions import (
    ENTRY_HASH,
    ENTRY_OFFSET,
    ENTRY_PREVIOUS,
    ENTRY_SIZE,
    ENTRY_TIME,
    SLOT,
)
from tidemark.format.kernels.queues import same_topic
from tidemark.format.kernels.text import text_hash

_I4_MAX = (1 << 31) - 1
_ROLLBACK = 0xC


@compiled(inline="always")
def _index_hash(value):  # type: ignore[no-untyped-def]
    """Return java_abs of a hash (uint32), with 0 for the value that stays negative."""
    signed = np.int64(np.int32(value))
    magnitude = -signed if signed < 0 else signed
    return np.int32(magnitude) if magnitude <= _I4_MAX else np.int32(0)


@compiled
def hash_keys(buffer, rows, hashes, physical_offsets, store_timestamps):  # type: ignore[no-untyped-def]
    """Write the hash of topic#key for every key of *rows*, in the order of the index, and return their number.

    The other two arrays receive the fields of each key's row. Keys that do not fit into the arrays are only counted.
    """
    n = 0
    seed, seed_of = np.uint32(0), -1
    for i in range(rows.size):
        row = rows[i]
        if (row.sys_flag & _ROLLBACK) == _ROLLBACK or (row.unique_key_length == 0 and row.keys_length == 0):
            continue
        if seed_of < 0 or not same_topic(buffer, row, rows[seed_of]):
            seed = text_hash(buffer, row.topic_at, row.topic_length, 0)
            seed, seed_of = np.uint32(seed * np.uint32(31) + np.uint32(35)), i
        if row.unique_key_length > 0:
            if n < hashes.size:
                hashes[n] = _index_hash(text_hash(buffer, row.unique_key_at, row.unique_key_length, seed))
                physical_offsets[n], store_timestamps[n] = row.physical_offset, row.store_timestamp
            n += 1
        end = row.keys_at + row.keys_length
        start = row.keys_at
        for at in range(row.keys_at, end + 1):
            if at < end and buffer[at] != 32:
                continue
            if at > start:
                if n < hashes.size:
                    hashes[n] = _index_hash(text_hash(buffer, start, at - start, seed))
                    physical_offsets[n], store_timestamps[n] = row.physical_offset, row.store_timestamp
                n += 1
            start = at + 1
    return n


@compiled
def order_by_slot(hashes, n_slots, order):  # type: ignore[no-untyped-def]
    """Fill *order* with the numbers of the keys sorted by slot, stably, by insertion: for few keys."""
    for i in range(hashes.size):
        k = i
        while k > 0 and hashes[order[k - 1]] % n_slots > hashes[i] % n_slots:
            order[k] = order[k - 1]
            k -= 1
        order[k] = i


@compiled
def make_entries(  # type: ignore[no-untyped-def]
    hashes, physical_offsets, store_timestamps, order, slots, first_entry, begin_timestamp, out, numbers, values
):
    """Write the entries of consecutive keys of one file, and the resulting slots.

    order            the keys' numbers, sorted by slot, stable
    slots            the current slot table, uint8, big-endian i4
    first_entry      number of the first new entry (indexCount)
    begin_timestamp  of the header before these entries
    out              uint8, one entry per key, in the keys' order
    numbers, values  int32, at most one per key: the slots to set, ascending and distinct, and their values
    returns          (number of slots that were empty before, number of slots to set)
    """
    n_slots = slots.size // SLOT
    fresh, changed = 0, 0
    last_slot = -1
    last_entry = 0
    for k in range(order.size):
        i = order[k]
        slot = hashes[i] % n_slots
        entry = first_entry + i
        if slot != last_slot:
            changed += 1
            previous = get_i4(slots, SLOT * slot)
            if previous <= 0 or previous > entry:
                previous = 0
                fresh += 1
        else:
            previous = last_entry
        difference = np.int64(0)
        reference = begin_timestamp
        if entry > 1 and first_entry <= 1:
            reference = store_timestamps[0]
        if reference > 0:
            difference = (store_timestamps[i] - reference) // 1000 if store_timestamps[i] >= reference else np.int64(0)
        to = ENTRY_SIZE * i
        put_i4(out, to + ENTRY_HASH, hashes[i])
        put_i8(out, to + ENTRY_OFFSET, physical_offsets[i])
        put_i4(out, to + ENTRY_TIME, min(difference, _I4_MAX))
        put_i4(out, to + ENTRY_PREVIOUS, previous)
        numbers[changed - 1], values[changed - 1] = slot, entry
        last_slot = slot
        last_entry = entry
    return fresh, changed


@compiled
def find_entries(slots, entries, key_hash, index_count, begin_timestamp, begin_ms, end_ms, out):  # type: ignore[no-untyped-def]
    """Write physical offsets of entries of *key_hash* within [begin_ms, end_ms], newest first; return their number.

    entries: uint8, the table from entry 0. Stops when *out* is full, at a negative difference, at the chain's end, or
    (format.md §14) at times below begin_ms. A chain must lead to older entries only; otherwise the loop would not end.
    """
    n = 0
    last = min(
        index_count, entries.size // ENTRY_SIZE - 1
    )  # a slot may point at indexCount itself, never beyond the table
    number = get_i4(slots, SLOT * (key_hash % (slots.size // SLOT)))
    if index_count <= 1 or number <= 0 or number > last:
        return 0
    while n < out.size:
        at = ENTRY_SIZE * number
        difference = get_i4(entries, at + ENTRY_TIME)
        if difference < 0:
            break
        timestamp = begin_timestamp + difference * 1000
        if get_i4(entries, at + ENTRY_HASH) == key_hash and begin_ms <= timestamp <= end_ms:
            out[n] = get_i8(entries, at + ENTRY_OFFSET)
            n += 1
        previous = get_i4(entries, at + ENTRY_PREVIOUS)
        if previous <= 0 or previous >= number or timestamp < begin_ms:
            break
        number = previous
    return n


@compiled
def oldest_entries(slots, entries, key_hash, begin_timestamp, least_ms, after, below, ring):  # type: ignore[no-untyped-def]
    """Collect the least physical offsets of *key_hash* within (after, below), and return how many the chain has there.

    A chain leads from new to old, so the last `ring.size` hits are kept: hit number i is stored at ring[i % ring.size].
    The walk stops unless numbers descend, because the slot may change concurrently.
    """
    n = 0
    capacity = entries.size // ENTRY_SIZE
    number = get_i4(slots, SLOT * (key_hash % (slots.size // SLOT)))
    while 0 < number < capacity:
        at = ENTRY_SIZE * number
        if get_i4(entries, at + ENTRY_HASH) == key_hash:
            physical_offset = get_i8(entries, at + ENTRY_OFFSET)
            timestamp = begin_timestamp + np.int64(get_i4(entries, at + ENTRY_TIME)) * 1000
            if after < physical_offset < below and timestamp + 1000 > least_ms:
                ring[n % ring.size] = physical_offset
                n += 1
        previous = get_i4(entries, at + ENTRY_PREVIOUS)
        if previous >= number:
            break
        number = previous
    return n
