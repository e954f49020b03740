"""Chains of index files in compiled loops: the check that they lead to each entry, and a search by reads of the file.

docs/format.md §6, §14.
"""

from __future__ import annotations

import numpy as np

from tidemark.format.index_layout import HEADER_SIZE
from tidemark.format.kernels.compiled import compiled, machine
from tidemark.format.kernels.integers import get_i4, get_i8
from tidemark.format.kernels.positions import (
    ENTRY_HASH,
    ENTRY_OFFSET,
    ENTRY_PREVIOUS,
    ENTRY_SIZE,
    ENTRY_TIME,
    HEADER_BEGIN_TIMESTAMP,
    SLOT,
)

NOT_CACHED = -1
_HEADER_SIZE = HEADER_SIZE


@compiled
def check_chains(slots, entries, index_count, last):  # type: ignore[no-untyped-def]
    """Return the number of the first entry with a wrong chain, and the first wrong slot; 0 and -1 if all are right.

    slots, entries  uint8, the two tables; entry 0 is not used
    last            int32, one per slot, zeros: work space

    A slot may be ahead of *index_count* while its file is written: it counts as right if its chain leads back.
    """
    wrong_entry = 0
    for number in range(1, index_count):
        slot = get_i4(entries, ENTRY_SIZE * number + ENTRY_HASH) % last.size
        previous = get_i4(entries, ENTRY_SIZE * number + ENTRY_PREVIOUS)
        if previous != last[slot] and wrong_entry == 0:
            wrong_entry = number
        last[slot] = number
    for slot in range(last.size):
        value = get_i4(slots, SLOT * slot)
        while value >= index_count and ENTRY_SIZE * (value + 1) <= entries.size:
            previous = get_i4(entries, ENTRY_SIZE * value + ENTRY_PREVIOUS)
            if previous >= value:
                break
            value = previous
        if value != last[slot]:
            return wrong_entry, slot
    return wrong_entry, -1


@compiled(inline="always")
def _is_read(descriptor, scratch, length, offset):  # type: ignore[no-untyped-def]
    return machine.read_cached(np.int32(descriptor), scratch, np.int64(length), np.int64(offset)) == length


@compiled
def find_cached(files, key_hash, after, below, least_ms, scratch, out):  # type: ignore[no-untyped-def]
    """Write the physical offsets of *key_hash* within (after, below) in several files, and return their number.

    The offsets of a file are together, from new to old. Reads the page cache only: NOT_CACHED if that is
    not enough, or if *out* is full, or if a chain is longer than *out*.

    files     int64, a row for each file: descriptor, number of slots, number of entries
    least_ms  leave out entries that are certainly older
    scratch   uint8, room for an entry or a header
    """
    n = 0
    for i in range(files.shape[0]):
        descriptor, slots, capacity = files[i]
        begin_timestamp = np.int64(0)
        if least_ms > 0:
            if not _is_read(descriptor, scratch, _HEADER_SIZE, 0):
                return NOT_CACHED
            begin_timestamp = get_i8(scratch, HEADER_BEGIN_TIMESTAMP)
        if not _is_read(descriptor, scratch, SLOT, _HEADER_SIZE + SLOT * (key_hash % slots)):
            return NOT_CACHED
        number, steps = get_i4(scratch, 0), 0
        while 0 < number < capacity:
            if steps == out.size or not _is_read(
                descriptor, scratch, ENTRY_SIZE, _HEADER_SIZE + SLOT * slots + ENTRY_SIZE * number
            ):
                return NOT_CACHED
            steps += 1
            if get_i4(scratch, ENTRY_HASH) == key_hash:
                physical_offset = get_i8(scratch, ENTRY_OFFSET)
                latest_ms = begin_timestamp + np.int64(get_i4(scratch, ENTRY_TIME)) * 1000 + 1000
                if after < physical_offset < below and latest_ms > least_ms:
                    if n == out.size:
                        return NOT_CACHED
                    out[n] = physical_offset
                    n += 1
            previous = get_i4(scratch, ENTRY_PREVIOUS)
            if previous >= number:
                break
            number = previous
    return n
