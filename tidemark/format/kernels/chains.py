"""Compiled check that slots and chains of an index file lead to each of its entries (docs/format.md §6, §14)."""

from __future__ import annotations

from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.integers import get_i4
from tidemark.format.kernels.positions import ENTRY_HASH, ENTRY_PREVIOUS, ENTRY_SIZE, SLOT


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
