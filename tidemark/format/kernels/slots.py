"""Writing of many slots of an index file: stretches of its new table, one per write."""

from __future__ import annotations

from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.copy import copy_bytes
from tidemark.format.kernels.integers import put_i4
from tidemark.format.kernels.positions import SLOT


@compiled
def make_stretches(table, numbers, values, first, gap, out, stretches):  # type: ignore[no-untyped-def]
    """Fill *out* with stretches of *table* in which slots *numbers*, starting with index *first*, are set to *values*.

    table      uint8, big-endian i4, the current contents
    numbers    ascending, distinct
    gap        include gaps of at most this many unchanged slots
    out        uint8, a whole number of slots; stretches: int64, three each: number of the first slot, begin and end in
               *out*
    returns    (number of stretches, index of the next of *numbers*): not all if *out* or *stretches* is full
    """
    n, end, i = 0, 0, first
    while i < numbers.size and n < stretches.shape[0] and end < out.size:
        number = numbers[i]
        stretches[n, 0], stretches[n, 1] = number, end
        while True:
            put_i4(out, end, values[i])
            end += SLOT
            i += 1
            if i == numbers.size or numbers[i] - number - 1 > gap:
                break
            between = SLOT * (numbers[i] - number - 1)
            if end + between + SLOT > out.size:
                break
            copy_bytes(table, SLOT * (number + 1), between, out, end)
            end += between
            number = numbers[i]
        stretches[n, 2] = end
        n += 1
    return n, i
