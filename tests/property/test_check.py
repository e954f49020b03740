"""The compiled walk equals its plain twin, on valid, nearly valid and arbitrary bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import builders, plain_check
from tests.property.strategies import damaged_logs, logs, record_fields
from tidemark.format.check import Checker, CheckResult, Crc, find_next_record, shard_of
from tidemark.format.dispatch_request import REQUEST_FIELDS, Fault, Outcome

BASE = 4096


def as_rows(result: CheckResult) -> list[plain_check.Row]:
    return [{name: int(row[name]) for name, _ in REQUEST_FIELDS} for row in result.requests]


def as_plain(result: CheckResult) -> plain_check.PlainResult:
    return plain_check.PlainResult(
        as_rows(result), result.outcome.name, result.fault.name, result.end_at, result.records
    )


def u8(data: bytes) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(data, np.uint8)


FILE_ENDS = st.one_of(st.none(), st.integers(-10, 1000))


@given(
    data=st.one_of(damaged_logs(base_offset=BASE), st.binary(max_size=300)),
    file_end=FILE_ENDS,
    crc=st.sampled_from(Crc),
    shards=st.integers(1, 3),
    light=st.booleans(),
    max_rows=st.one_of(st.just(65_536), st.integers(1, 3)),
)
def test_walk_equals_plain_twin(
    data: bytes, file_end: int | None, crc: Crc, shards: int, light: bool, max_rows: int
) -> None:
    """Rows, outcome, fault and position of the compiled walk are those of the plain one."""
    file_end = None if file_end is None else max(len(data) + file_end, 0)
    for shard in range(shards):
        checker = Checker(crc=crc, shard=shard, shards=shards, light=light, max_rows=max_rows)
        walked = checker.check(u8(data), base_offset=BASE, file_end=file_end)
        result = as_plain(walked)
        room = min(max_rows, len(data) // 91 + 1)
        twin = plain_check.walk(
            data,
            base_offset=BASE,
            file_end=file_end,
            crc=crc.name,
            shard=shard,
            shards=shards,
            light=light,
            max_rows=room,
        )
        assert result == twin
        assert walked.faulty == sum(row["fault"] != Fault.NONE for row in twin.rows)


@given(data=logs(base_offset=BASE), before=st.binary(max_size=20), behind=st.binary(max_size=20))
def test_a_walk_of_a_range_reads_only_the_range(data: bytes, before: bytes, behind: bytes) -> None:
    """Bytes before start and after end change only the positions."""
    plain = as_plain(Checker().check(u8(data), base_offset=BASE))
    buffer = before + data + behind
    outer = Checker().check(u8(buffer), base_offset=BASE - len(before), start=len(before), end=len(before) + len(data))
    assert (outer.outcome.name, outer.fault.name, outer.records) == (plain.outcome, plain.fault, plain.records)
    assert outer.end_at == plain.end_at + len(before)
    assert [row["physical_offset"] for row in as_rows(outer)] == [row["physical_offset"] for row in plain.rows]


@given(data=damaged_logs(base_offset=BASE), start=st.integers(0, 200), file_end=FILE_ENDS)
def test_find_next_record_equals_trying_every_offset(data: bytes, start: int, file_end: int | None) -> None:
    """The search after damage finds the same as brute force."""
    file_end = None if file_end is None else max(len(data) + file_end, 0)
    start = min(start, len(data))
    found = find_next_record(u8(data), base_offset=BASE, start=start, file_end=file_end)
    assert found == plain_check.find_next(data, base_offset=BASE, start=start, file_end=file_end)


@given(fields=st.lists(record_fields(), min_size=1, max_size=4), data=st.data())
def test_find_next_record_finds_the_record_after_garbage(fields: list[dict[str, Any]], data: st.DataObject) -> None:
    """A valid record is found after any bytes, unless an earlier valid one is."""
    garbage = data.draw(st.binary(max_size=30))
    log = garbage + builders.row_of_records(fields, base_offset=BASE + len(garbage))
    found = find_next_record(u8(log), base_offset=BASE)
    assert found is not None
    assert found <= len(garbage)


@given(fields=st.lists(record_fields(), max_size=5), cut=st.integers(0, 1200))
def test_log_cut_anywhere_checks_as_a_prefix_of_itself(fields: list[dict[str, Any]], cut: int) -> None:
    """The rows of a cut log are the first rows of the whole one, and the cut has its own outcome."""
    log = builders.row_of_records(fields, base_offset=BASE)
    cut = min(cut, len(log))
    whole = as_plain(Checker().check(u8(log), base_offset=BASE))
    part = as_plain(Checker().check(u8(log[:cut]), base_offset=BASE))
    assert part.rows == whole.rows[: len(part.rows)]
    assert part.end_at <= min(cut, whole.end_at)
    if whole.outcome == "END":
        assert part.outcome == ("END" if part.end_at == cut else "PARTIAL")


@given(topic=st.binary(max_size=300), queue_id=st.integers(-(1 << 31), (1 << 31) - 1), shards=st.integers(1, 100))
def test_shard_of_equals_plain_twin(topic: bytes, queue_id: int, shards: int) -> None:
    """A queue's shard follows only from the CRC of its topic and id."""
    assert shard_of(topic, queue_id, shards) == plain_check.owner_of(topic, queue_id, shards)


@given(data=logs(base_offset=BASE), shards=st.integers(2, 4))
def test_every_record_belongs_to_exactly_one_shard(data: bytes, shards: int) -> None:
    """Every record of a walk without faults is a row of exactly one shard."""
    whole = as_plain(Checker().check(u8(data), base_offset=BASE))
    if whole.outcome != Outcome.END.name:
        return
    parts = [as_rows(Checker(shard=shard, shards=shards).check(u8(data), base_offset=BASE)) for shard in range(shards)]
    rows = sorted((row for part in parts for row in part), key=lambda row: row["physical_offset"])
    assert rows == whole.rows


@pytest.mark.parametrize(("start", "end"), [(-1, None), (0, 101), (60, 50), (101, None)])
def test_a_range_outside_the_buffer_is_refused(start: int, end: int | None) -> None:
    """Compiled loops never get a range that is not within the buffer."""
    with pytest.raises(ValueError, match="of a contiguous buffer of 100"):
        Checker().check(np.zeros(100, np.uint8), base_offset=0, start=start, end=end)
    with pytest.raises(ValueError, match="of a contiguous buffer of 100"):
        find_next_record(np.zeros(100, np.uint8), base_offset=0, start=start, end=end)
