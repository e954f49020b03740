"""What a reader decides for each unit of a queue and each record it will read, in compiled loops.

Twin: `tidemark.format.reading`.
"""

from __future__ import annotations

from tidemark.format import batch_consume_queue, consume_queue
from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.integers import get_i2, get_i4, get_i8

_BLANK = consume_queue.PRE_BLANK_SIZE
_BASE_OFFSET_AT, _COUNT_AT = (batch_consume_queue.UNIT.fields[name][1] for name in ("base_offset", "batch_size"))  # type: ignore[index]


@compiled
def _is_live(units, at, unit_size):  # type: ignore[no-untyped-def]
    """Whether the unit at byte *at*, which is no pre-blank one, points at a record (docs/format.md §4, §5)."""
    if get_i8(units, at) < 0 or get_i4(units, at + 8) <= 0:
        return False
    return unit_size == consume_queue.UNIT_SIZE or (
        get_i8(units, at + _BASE_OFFSET_AT) >= 0 and get_i2(units, at + _COUNT_AT) > 0
    )


@compiled
def count_visible(units, unit_size, least, limit):  # type: ignore[no-untyped-def]
    """How far a run of units ascends below *limit*: (behind the last such unit, start of its record, where it stopped).

    units      uint8, whole units of *unit_size* bytes
    least      start of the record before them; a unit whose record starts at or below that is an old one
    limit      physical offset at which a record must end at the latest
    stopped    at a unit that is not visible, else how many units there are. Pre-blank units are stepped over
    """
    end = 0
    count = units.size // unit_size
    for i in range(count):
        at = i * unit_size
        size = get_i4(units, at + 8)
        if size == _BLANK:
            continue
        start = get_i8(units, at)
        if not _is_live(units, at, unit_size) or start + size > limit or start <= least:
            return end, least, i
        least = start
        end = i + 1
    return end, least, count


@compiled
def choose(sizes, wanted, is_candidate, most_messages, most_bytes, is_first, is_whole, counts, kept):  # type: ignore[no-untyped-def]
    """Which units to read: as many candidates as the limits allow.

    sizes, wanted  of each unit: bytes of its record, messages of it that would be given
    most_messages, most_bytes  that may still be given
    is_first       the first candidate is taken whatever its size and count
    is_whole       all messages of a record must fit; else one may be left, where *counts* says that they count at all
    kept           int64, one a unit: numbers of those to read
    returns        (how many to read, units examined, bytes to read, messages, whether a limit was met)
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
def plan_reads(offsets, sizes, file_size, gap, most_together, places, ends):  # type: ignore[no-untyped-def]
    """Which records to read together: close to each other, in one file.

    offsets, sizes  physical offsets, and bytes; all in files of *file_size* (0: not known)
    gap             so many bytes between two records are read along
    most_together   bytes of records with anything between them; of others as many as there are
    places          to fill: where each record starts when they lie back to back
    ends            to fill: number behind the last record of each read
    returns         (how many reads, bytes of all records); (-1, 0) for a record that no file can hold
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
            ends[n] = last
            n += 1
            first = last
        while first < last:
            stop = first + 1
            while stop < last and offsets[stop] + sizes[stop] <= offsets[first] + most_together:
                stop += 1
            ends[n] = stop
            n += 1
            first = stop
    return n, total
