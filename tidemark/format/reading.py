"""What a reader decides about many units of a queue and many records at once, by compiled loops."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.kernels import reading as kernel

IntArray = NDArray[np.int64]


class VisibleRun(NamedTuple):
    """How far units that follow each other may be seen.

    end      behind the last one of them that may; 0 for none
    least    where its record starts; where the one before them does, for none
    stopped  number of the first one that may not; how many there are, for none
    """

    end: int
    least: int
    stopped: int


def visible_run(units: NDArray[np.void], *, least: int, limit: int) -> VisibleRun:
    """Of *units*, of either kind of queue, those that point at records which ascend from *least* on and end by *limit*.

    least, limit  physical offsets; *least*: where the record before them starts. Pre-blank units are stepped over
    """
    return VisibleRun(*kernel.count_visible(units.view(np.uint8), units.dtype.itemsize, least, limit))


class ReadLimits(NamedTuple):
    """What may still be given.

    messages, size  so many, and bytes of records
    is_first        nothing was given yet: one record comes whatever it takes
    is_whole        never a part of a record's messages
    counts          False: messages are not counted, because only some of a record's will be given
    """

    messages: int
    size: int
    is_first: bool
    is_whole: bool
    counts: bool


class Choice(NamedTuple):
    """Which units to read. numbers: of them, None for none; examined: units from the first on.

    size, messages  bytes of their records, and messages of these that would be given
    is_full         whether a limit was met
    """

    numbers: IntArray | slice | None
    examined: int
    size: int
    messages: int
    is_full: bool


def choose(sizes: IntArray, wanted: IntArray, is_candidate: NDArray[np.bool_], limits: ReadLimits) -> Choice:
    """As many candidates as *limits* allow. sizes, wanted: of each unit, bytes of its record and messages to give."""
    kept = np.empty(len(sizes), np.int64)
    count, examined, size, messages, is_full = kernel.choose(sizes, wanted, is_candidate, *limits, kept)
    numbers = None if not count else slice(count) if count == examined else kept[:count]
    return Choice(numbers, examined, size, messages, bool(is_full))


class ReadPlan(NamedTuple):
    """How records are read. places: where each will start when they lie back to back; size: of all of them, bytes."""

    places: IntArray
    runs: list[slice]  # records to read together
    size: int


def plan_reads(
    physical_offsets: IntArray, sizes: IntArray, *, file_size: int, gap: int, most_together: int
) -> ReadPlan | None:
    """Reads of records that lie close to each other in one file; None where a record can be in no file.

    file_size      0 where it is not known
    gap            so many bytes between two records are read along
    most_together  bytes of a read with anything between its records; without, it is as long as it likes
    """
    places, ends = np.empty(len(sizes), np.int64), np.empty(len(sizes), np.int64)
    count, size = kernel.plan_reads(physical_offsets, sizes, file_size, gap, most_together, places, ends)
    if count < 0:
        return None
    edges = [0, *ends[:count].tolist()]
    return ReadPlan(places, list(itertools.starmap(slice, itertools.pairwise(edges))), int(size))
