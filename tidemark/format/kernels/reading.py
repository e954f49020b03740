"""Decisions of a reader about units and records, in compiled loops.

Twin: `tidemark.format.reading`.
"""

from __future__ import annotations

from tidemark.format import batch_consume_queue, consume_queue
from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.integers import get_i2, get_i4, get_i8
from tidemark.format.kernels.positions import UNIT_MESSAGE_SIZE, UNIT_PHYSICAL_OFFSET, positions

_BLANK = consume_queue.PRE_BLANK_SIZE
_BASE_OFFSET_AT, _COUNT_AT = positions(batch_consume_queue.UNIT, "base_offset", "batch_size")


@compiled
def _is_live(units, at, unit_size):  # type: ignore[no-untyped-def]
    """Return True if the unit at byte *at*, which is not pre-blank, points at a record (docs/format.md §4, §5)."""
    if get_i8(units, at + UNIT_PHYSICAL_OFFSET) < 0 or get_i4(units, at + UNIT_MESSAGE_SIZE) <= 0:
        return False
    return unit_size == consume_queue.UNIT_SIZE or (
        get_i8(units, at + _BASE_OFFSET_AT) >= 0 and get_i2(units, at + _COUNT_AT) > 0
    )


@compiled
def count_visible(units, unit_size, least, limit, in_order):  # type: ignore[no-untyped-def]
    """Return the number after the last visible unit, the physical offset of its record, and where the search stopped.

    units      uint8, whole units of *unit_size* bytes
    least      physical offset of the record before them; if *in_order*, a unit at or below it is stale
    limit      greatest physical offset at which a record may end
    stopped    the first unit that is not visible, otherwise the number of units. Pre-blank units are skipped
    """
    end = 0
    count = units.size // unit_size
    for i in range(count):
        at = i * unit_size
        size = get_i4(units, at + UNIT_MESSAGE_SIZE)
        if size == _BLANK:
            continue
        start = get_i8(units, at + UNIT_PHYSICAL_OFFSET)
        if not _is_live(units, at, unit_size) or start + size > limit or (in_order and start <= least):
            return end, least, i
        least = start
        end = i + 1
    return end, least, count


@compiled
def choose(sizes, wanted, is_candidate, most_messages, most_bytes, is_first, is_whole, counts, kept):  # type: ignore[no-untyped-def]
    """Choose the units to read: as many candidates as the limits allow.

    sizes, wanted  per unit: bytes of its record, and number of messages to return
    most_messages, most_bytes  remaining limits
    is_first       accept the first candidate regardless of its size and count
    is_whole       all messages of a record must fit; otherwise one remaining message suffices, if *counts* is True
    kept           int64, one per unit: receives the numbers of units to read
    returns        (number of units to read, units examined, bytes to read, messages, whether a limit was reached)
    """
    n, total, messages, examined = 0, 0, 0, 0
    for i in range(sizes.size):
        if not is_candidate[i]:
            continue
        fits = total + sizes[i] <= most_bytes
        if is_whole:
            fits = fits and messages + wanted[i] <= most_messages
        elif counts:
            fits = fits and messages < most_messages
        if not fits and not (is_first and n == 0):
            return n, examined if n > 0 else i, total, messages, True
        kept[n] = i
        n += 1
        total += sizes[i]
        messages += wanted[i]
        examined = i + 1
    return n, sizes.size, total, messages, False


@compiled
def choose_units(units, unit_size, number, most_messages, most_bytes, is_first, numbers, offsets, sizes):  # type: ignore[no-untyped-def]
    """Choose the units to read of those of a simple queue, each with one message, as `choose` does.

    units    uint8, whole units of *unit_size* bytes, the first of which is unit *number*
    numbers, offsets, sizes  receive the number of each unit to read, its record's physical offset and its bytes
    returns  (number of units to read, units examined, bytes to read, whether a limit was reached)
    """
    n, total, examined = 0, 0, 0
    count = units.size // unit_size
    for i in range(count):
        at = i * unit_size
        size = get_i4(units, at + UNIT_MESSAGE_SIZE)
        if size == _BLANK:
            continue
        if (total + size > most_bytes or n >= most_messages) and not (is_first and n == 0):
            return n, examined if n > 0 else i, total, True
        numbers[n] = number + i
        offsets[n] = get_i8(units, at + UNIT_PHYSICAL_OFFSET)
        sizes[n] = size
        n += 1
        total += size
        examined = i + 1
    return n, count, total, False


@compiled
def _fill_run(run, offsets, sizes, places, first, stop):  # type: ignore[no-untyped-def]
    last = stop - 1
    run[0] = first
    run[1] = stop
    run[2] = offsets[first]
    run[3] = offsets[last] + sizes[last] - offsets[first]
    run[4] = places[first]
    run[5] = places[last] + sizes[last] - places[first]


@compiled
def plan_reads(offsets, sizes, file_size, gap, most_together, places, runs):  # type: ignore[no-untyped-def]
    """Plan which records to read together: close to each other, in one file.

    offsets, sizes  physical offsets and bytes, in files of *file_size* (0: unknown)
    gap             read over gaps of at most this many bytes
    most_together   most bytes of a read with gaps; a read without gaps is not limited
    places          receives the start of each record when they are stored consecutively
    runs            receives for each read: the numbers of its first record and after its last one, its physical offset
                    and bytes, gaps included, and the place and bytes of its records
    returns         (number of reads, bytes of all records); (-1, 0) if a record cannot be in any file
    """
    total = 0
    for i in range(offsets.size):
        if file_size > 0 and (offsets[i] < 0 or sizes[i] <= 0 or offsets[i] % file_size + sizes[i] > file_size):
            return -1, 0
        places[i] = total
        total += sizes[i]
    n, first = 0, 0
    while first < offsets.size:
        file_end = offsets[first] - offsets[first] % file_size + file_size if file_size > 0 else -1
        behind, last, has_gaps = offsets[first] + sizes[first], first + 1, False
        while last < offsets.size:
            between = offsets[last] - behind
            if between > gap or between < 0 or (file_size > 0 and offsets[last] >= file_end):
                break
            has_gaps = has_gaps or between > 0
            behind = offsets[last] + sizes[last]
            last += 1
        if not has_gaps:
            _fill_run(runs[n], offsets, sizes, places, first, last)
            n += 1
            first = last
        while first < last:
            stop = first + 1
            while stop < last and offsets[stop] + sizes[stop] <= offsets[first] + most_together:
                stop += 1
            _fill_run(runs[n], offsets, sizes, places, first, stop)
            n += 1
            first = stop
    return n, total
