"""Limits of a read in compiled loops equal the same in plain Python."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidemark.format import batch_consume_queue, consume_queue
from tidemark.format.reading import ReadLimits, choose, choose_units, find_end, plan_reads, visible_run

BLANK = consume_queue.PRE_BLANK_SIZE


class Unit(NamedTuple):
    """A unit of either queue; base_offset and messages are used only in a BatchConsumeQueue."""

    start: int
    size: int
    base_offset: int = 0
    messages: int = 1


UNITS = st.lists(
    st.builds(
        Unit,
        st.integers(-1, 40),
        st.integers(-1, 9) | st.just(BLANK),
        st.integers(-1, 3),
        st.integers(-1, 3),
    ),
    max_size=12,
)


def encoded(units: list[Unit], *, batch: bool) -> NDArray[np.void]:
    starts, sizes, bases, counts = zip(*units, strict=True) if units else ((), (), (), ())
    columns = {"physical_offset": starts, "message_size": sizes, "tags_code": np.zeros(len(units))}
    if batch:
        more = {"store_timestamp": np.zeros(len(units)), "base_offset": bases, "batch_size": counts}
        return batch_consume_queue.decode_units(batch_consume_queue.encode_units(**columns, **more))
    return consume_queue.decode_units(consume_queue.encode_units(**columns))


@given(units=UNITS, batch=st.booleans(), least=st.integers(-1, 20), limit=st.integers(0, 50))
def test_units_are_visible_while_they_ascend_below_the_limit(
    units: list[Unit], batch: bool, least: int, limit: int
) -> None:
    end, stopped, before = 0, len(units), least
    for number, unit in enumerate(units):
        if unit.size == BLANK:
            continue
        is_live = unit.start >= 0 and unit.size > 0 and (not batch or (unit.base_offset >= 0 and unit.messages > 0))
        if not is_live or unit.start + unit.size > limit or unit.start <= before:
            stopped = number
            break
        end, before = number + 1, unit.start
    assert visible_run(encoded(units, batch=batch), least=least, limit=limit) == (end, before, stopped)


@given(units=UNITS, batch=st.booleans(), limit=st.integers(0, 50))
def test_the_end_is_after_the_last_unit_before_an_invisible_one(units: list[Unit], batch: bool, limit: int) -> None:
    """The order of the records does not count."""
    is_visible = [
        unit.start >= 0
        and unit.size > 0
        and unit.start + unit.size <= limit
        and (not batch or (unit.base_offset >= 0 and unit.messages > 0))
        for unit in units
    ]
    blank = [unit.size == BLANK for unit in units]
    stopped = next((n for n in range(len(units)) if not blank[n] and not is_visible[n]), len(units))
    end = max((n + 1 for n in range(stopped) if not blank[n]), default=0)
    assert find_end(encoded(units, batch=batch), limit=limit) == (end, stopped)


@given(units=UNITS, most_messages=st.integers(0, 12), most_bytes=st.integers(-3, 40), is_first=st.booleans())
def test_units_of_a_simple_queue_are_chosen_like_other_units(
    units: list[Unit], most_messages: int, most_bytes: int, is_first: bool
) -> None:
    """One loop over the units has the result of `choose` for their columns."""
    found = encoded(units, batch=False)
    chosen = choose_units(found, 7, most_messages=most_messages, most_bytes=most_bytes, is_first=is_first)
    expected = choose(
        found["message_size"].astype(np.int64),
        np.ones(len(units), np.int64),
        found["message_size"] != BLANK,
        ReadLimits(most_messages, most_bytes, is_first, True, True),
    )
    numbers = np.arange(len(units))[[] if expected.numbers is None else expected.numbers]
    assert chosen.numbers.tolist() == (7 + numbers).tolist()
    assert chosen.physical_offsets.tolist() == found["physical_offset"][numbers].tolist()
    assert chosen.sizes.tolist() == found["message_size"][numbers].tolist()
    assert len(chosen.numbers) == expected.messages
    assert chosen[3:] == (expected.examined, expected.size, expected.is_full)


@given(
    rows=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4), st.booleans()), max_size=12),
    most_messages=st.integers(0, 12),
    most_bytes=st.integers(-3, 40),
    is_first=st.booleans(),
    is_whole=st.booleans(),
    counts=st.booleans(),
)
def test_as_many_records_are_read_as_the_limits_allow(
    rows: list[tuple[int, int, bool]],
    most_messages: int,
    most_bytes: int,
    is_first: bool,
    is_whole: bool,
    counts: bool,
) -> None:
    """The limits count sums from the beginning; the first one is always read."""
    candidates = [number for number, row in enumerate(rows) if row[2]]
    n = 0
    while n < len(candidates):
        sizes, messages = ([rows[number][i] for number in candidates[: n + 1]] for i in (0, 1))
        fits = sum(sizes) <= most_bytes
        if is_whole:
            fits = fits and sum(messages) <= most_messages
        elif counts:
            fits = fits and sum(messages[:-1]) < most_messages
        if not fits and not (is_first and n == 0):
            break
        n += 1
    chosen, is_full = candidates[:n], n < len(candidates)
    examined = len(rows) if not is_full else (chosen[-1] + 1 if chosen else candidates[0])
    sizes_of_all, wanted = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    found = choose(
        sizes_of_all,
        wanted,
        np.array([row[2] for row in rows], np.bool_),
        ReadLimits(most_messages, most_bytes, is_first, is_whole, counts),
    )
    sums = tuple(sum(rows[number][i] for number in chosen) for i in (0, 1))
    assert found[1:] == (examined, *sums, is_full)
    assert ([] if found.numbers is None else np.arange(len(rows))[found.numbers].tolist()) == chosen


@given(
    records=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 8)), max_size=12),
    file_size=st.sampled_from([0, 16, 64]),
    gap=st.integers(0, 6),
    together=st.integers(1, 30),
)
def test_adjacent_records_are_read_together(
    records: list[tuple[int, int]], file_size: int, gap: int, together: int
) -> None:
    """Each pair of *records* is the gap before a record, and its size."""
    offsets, sizes, at = [], [], 0
    for between, size in records:
        at += between
        if file_size and at % file_size + size > file_size:
            at += file_size - at % file_size
        offsets.append(at)
        sizes.append(size)
        at += size
    plan = plan_reads(
        np.array(offsets, np.int64), np.array(sizes, np.int64), file_size=file_size, gap=gap, most_together=together
    )
    assert plan is not None
    assert (plan.size, plan.places.tolist()) == (sum(sizes), [sum(sizes[:i]) for i in range(len(sizes))])
    edges = [0, *(run.stop for run in plan.runs)]
    assert [run.start for run in plan.runs] == edges[:-1]
    assert edges[-1] == len(records)
    for first, end in itertools.pairwise(edges):
        gaps = [offsets[i] - offsets[i - 1] - sizes[i - 1] for i in range(first + 1, end)]
        span = offsets[end - 1] + sizes[end - 1] - offsets[first]
        assert first < end
        assert all(each <= gap for each in gaps)
        assert not any(gaps) or span <= together or end == first + 1
        assert not file_size or offsets[first] // file_size == offsets[end - 1] // file_size
    breaks = {
        i
        for i in range(1, len(records))
        if offsets[i] - offsets[i - 1] - sizes[i - 1] > gap
        or (file_size and offsets[i] // file_size != offsets[i - 1] // file_size)
    }
    assert breaks <= set(edges), "these are not adjacent"


@given(
    records=st.lists(st.tuples(st.integers(-3, 70), st.integers(-2, 20)), min_size=1, max_size=4),
    file_size=st.sampled_from([16, 64]),
)
def test_a_record_that_no_file_contains_gives_no_plan(records: list[tuple[int, int]], file_size: int) -> None:
    offsets, sizes = (np.array(column, np.int64) for column in zip(*records, strict=True))
    possible = all(at >= 0 and size > 0 and at % file_size + size <= file_size for at, size in records)
    assert (plan_reads(offsets, sizes, file_size=file_size, gap=1, most_together=1) is not None) == possible
