"""Queue offsets by store time."""

from __future__ import annotations

import pytest

from tests.built_store import PRE_BLANK, BuiltStore
from tidemark.read.lookup.offset_by_time import (
    Boundary,
    TimeAnswer,
    offset_by_time,
    offset_by_time_as_broker,
)
from tidemark.read.store_reader import StoreReader

TIMES = [100, 100, 103, 105, 105, 105, 110, 111, 111, 120]


def ask(built: BuiltStore, topic: str, time_ms: int, boundary: Boundary) -> TimeAnswer:
    reader = StoreReader(built.root)
    queue = reader.queue(topic, 0)
    return offset_by_time(queue, reader.log, reader.bounds(queue, reader.watermark()), time_ms, boundary)


@pytest.mark.parametrize("units_a_file", [2, 3, 50], ids=lambda count: f"{count}-a-file")
@pytest.mark.parametrize("time_ms", range(98, 123))
def test_a_time_boundary_selects_the_offset_in_a_simple_queue(
    built: BuiltStore, units_a_file: int, time_ms: int
) -> None:
    """The result is the first message at or after the time, or the last one at or before; equal times span files."""
    built.units_a_file = units_a_file
    for time in TIMES:
        built.append("orders", at_ms=time)
    built.publish()
    built.append("orders", at_ms=99_999)
    after = [number for number, time in enumerate(TIMES) if time >= time_ms]
    before = [number for number, time in enumerate(TIMES) if time <= time_ms]
    lower = TimeAnswer(after[0], TIMES[after[0]]) if after else TimeAnswer(10, None)
    upper = TimeAnswer(before[-1], TIMES[before[-1]]) if before else TimeAnswer(0, None)
    assert ask(built, "orders", time_ms, Boundary.LOWER) == lower
    assert ask(built, "orders", time_ms, Boundary.UPPER) == upper
    reader = StoreReader(built.root)
    queue = reader.queue("orders", 0)
    bounds = reader.bounds(queue, reader.watermark())
    for boundary, answer in ((Boundary.LOWER, lower), (Boundary.UPPER, upper)):
        assert (
            offset_by_time_as_broker(queue, reader.log, bounds, time_ms, boundary) == answer.offset
        )  # docs/format.md §14


@pytest.mark.parametrize("time_ms", range(98, 123))
def test_a_time_boundary_selects_the_offset_in_a_batch_queue(built: BuiltStore, time_ms: int) -> None:
    """The result is the first message of the first batch, or the last message of the last batch."""
    built.units_a_file = 3
    sizes = [3, 1, 2, 4, 1, 1, 2, 5, 1, 2]
    firsts = [sum(sizes[:i]) for i in range(10)]
    for time, size in zip(TIMES, sizes, strict=True):
        built.append_batch("batches", [(b"x", {}, 0)] * size, at_ms=time)
    built.publish()
    after = [i for i, time in enumerate(TIMES) if time >= time_ms]
    before = [i for i, time in enumerate(TIMES) if time <= time_ms]
    assert ask(built, "batches", time_ms, Boundary.LOWER).offset == (firsts[after[0]] if after else sum(sizes))
    last = firsts[before[-1]] + sizes[before[-1]] - 1 if before else 0
    assert ask(built, "batches", time_ms, Boundary.UPPER).offset == last


def test_holes_and_damaged_records_are_skipped_in_a_time_lookup(built: BuiltStore) -> None:
    """Pre-blank units and records without a magic are skipped."""
    built.append("orders", at_ms=100)
    built.write_units("orders", 0, 1, PRE_BLANK * 3)
    built.next["orders", 0] = 4
    damaged = built.append("orders", at_ms=110)
    built.append("orders", at_ms=120)
    built.publish()
    built.write_log(damaged.physical_offset + 4, bytes(4))
    assert ask(built, "orders", 101, Boundary.LOWER) == TimeAnswer(5, 120)
    assert ask(built, "orders", 119, Boundary.UPPER) == TimeAnswer(0, 100)


def test_a_time_lookup_in_an_empty_queue_returns_offset_0(built: BuiltStore) -> None:
    assert ask(built, "orders", 5, Boundary.LOWER) == TimeAnswer(0, None)
    assert ask(built, "batches", 5, Boundary.UPPER) == TimeAnswer(0, None)


@pytest.mark.parametrize(
    ("time_ms", "offset"),
    [(99, 0), (100, 0), (101, 1), (110, 1), (111, 2), (120, 2), (121, 2)],
)
def test_a_time_lookup_as_broker_in_a_batch_queue_returns_the_base_offset(
    built: BuiltStore, time_ms: int, offset: int
) -> None:
    """At or after the last unit's time the result is its base, even if its time is earlier (docs/format.md §14)."""
    for time in (100, 110, 120):
        built.append("batches", at_ms=time)
    built.publish()
    reader = StoreReader(built.root)
    queue = reader.queue("batches", 0)
    bounds = reader.bounds(queue, reader.watermark())
    assert offset_by_time_as_broker(queue, reader.log, bounds, time_ms) == offset
