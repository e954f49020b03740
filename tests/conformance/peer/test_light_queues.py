"""ConsumeQueueTest with light queues (docs/format.md §2): the queues that a record names, and errors in its names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import properties, row_of_records, write_log
from tests.pipeline_runs import build, plan_of
from tidemark.format.check import Checker, Crc
from tidemark.index.ledger import read_ledger
from tidemark.index.light_queues import LightRuns, light_runs
from tidemark.read.store_reader import StoreReader

SIZES: dict[str, Any] = {"index_slots": 10, "consume_queue_file_size_bytes": 400}


def light_record(names: str, offsets: str | None, **fields: Any) -> dict[str, Any]:
    """Return a record that names light queues."""
    given_offsets = {} if offsets is None else {"INNER_MULTI_QUEUE_OFFSET": offsets}
    return {"properties": properties({"TAGS": "A", "INNER_MULTI_DISPATCH": names, **given_offsets}), **fields}


def runs_of(*records: dict[str, Any], batch_topics: tuple[str, ...] = ()) -> tuple[dict[str, list[int]], int]:
    """Return (queue offsets by light queue, misfits) of these records."""
    buffer = np.frombuffer(row_of_records(records), np.uint8)
    requests = Checker(crc=Crc.MARKS).check(buffer, base_offset=0).requests
    found: LightRuns = light_runs(buffer, requests, is_batch=lambda topic: topic in batch_topics)
    assert all(run.queue_id == 0 for run in found.runs)
    return {run.topic: run.requests["queue_offset"].tolist() for run in found.runs}, len(found.misfits)


@pytest.mark.parametrize("shards", [1, 3])
def test_cq2_light_queues_are_built_with_the_main_queue(tmp_path: Path, shards: int) -> None:
    """Ten messages for two light queues: both have ten units, whose records are the main queue's."""
    records = [light_record("%LMQ%123,%LMQ%456", f"{n},{n}", topic=b"T", queue_offset=n) for n in range(10)]
    write_log(tmp_path / "commitlog", 65_536, records)
    build(plan_of(tmp_path, shards=shards, enable_multi_dispatch=True, **SIZES))
    reader = StoreReader(tmp_path)
    for name in ("T", "%LMQ%123", "%LMQ%456"):
        assert reader.bounds(reader.queue(name, 0), reader.watermark())[:2] == (0, 10)
    main = (tmp_path / "consumequeue" / "T" / "0" / f"{0:020d}").read_bytes()
    assert (tmp_path / "consumequeue" / "%LMQ%123" / "0" / f"{0:020d}").read_bytes() == main


def test_cq2_light_queue_offsets_are_those_of_the_record() -> None:
    """They are by queue, in the order of the log; a record may name any number of queues."""
    found = runs_of(
        light_record("%LMQ%a", "4"), {}, light_record("%LMQ%b,%LMQ%a", "0,5"), light_record("%LMQ%a,", "6,")
    )
    assert found == ({"%LMQ%a": [4, 5, 6], "%LMQ%b": [0]}, 0)


@pytest.mark.parametrize(
    ("names", "offsets"),
    [("%LMQ%a,%LMQ%b", "1"), ("%LMQ%a", "1,2"), ("%LMQ%a", "x"), ("%LMQ%a", "-1"), ("Other", "1"), (",%LMQ%a", ",1")],
)
def test_cq2_mismatched_names_and_offsets_are_reported_and_get_no_unit(
    tmp_path: Path, names: str, offsets: str
) -> None:
    """The count differs, is no number, or a name lacks the prefix: the record keeps its unit, the ledger names it."""
    assert runs_of(light_record(names, offsets)) == ({}, 1)
    write_log(
        tmp_path / "commitlog", 65_536, [light_record(names, offsets, topic=b"T"), {"topic": b"T", "queue_offset": 1}]
    )
    plan = plan_of(tmp_path, shards=3, enable_multi_dispatch=True, **SIZES)
    build(plan)
    assert [entry["reason"] for entry in read_ledger(plan.paths.indexer)] == ["MULTI_DISPATCH"]
    reader = StoreReader(tmp_path)
    assert reader.bounds(reader.queue("T", 0), reader.watermark()).max_offset == 2
    assert list(reader.topics()) == ["T"]


@pytest.mark.parametrize(
    "record",
    [
        light_record("%LMQ%a", None),
        light_record("%LMQ%a", " "),
        light_record(" ", "1"),
        light_record("%LMQ%a/b", "1"),
        light_record("%LMQ%a", "1", topic=b"%RETRY%g"),
        light_record("%LMQ%a", "1", topic=b"rmq_sys_x"),
        light_record("%LMQ%a", "1", topic=b"SCHEDULE_TOPIC_XXXX"),
        light_record("%LMQ%a", "1", topic=b"Batch"),
        light_record("%LMQ%a", "1", sys_flag=0x4),
        light_record("%LMQ%a", "1", sys_flag=0xC),
    ],
)
def test_cq2_records_that_are_not_dispatched_get_no_light_unit(record: dict[str, Any]) -> None:
    """No offsets, a name with a slash, system topics, BatchCQ, half messages: no unit is built or reported."""
    assert runs_of(record, batch_topics=("Batch",)) == ({}, 0)


def test_cq2_a_record_with_damaged_properties_gets_no_light_unit() -> None:
    """The record's own CRC shows it: a garbled name must not become a queue."""
    data = bytearray(row_of_records([light_record("%LMQ%a", "1", property_crc=True)]))
    at = data.index(b"%LMQ%a")
    data[at + 5] ^= 1
    buffer = np.frombuffer(bytes(data), np.uint8)
    requests = Checker(crc=Crc.MARKS).check(buffer, base_offset=0).requests
    assert light_runs(buffer, requests, is_batch=lambda _: False).runs == []


@given(names=st.text("%LMQa,/ ", max_size=12), offsets=st.text("0123,x- ", max_size=8))
def test_cq2_any_text_is_dispatched_or_a_misfit(names: str, offsets: str) -> None:
    """Nothing is raised, and no queue is named without its prefix or with a slash."""
    found, _ = runs_of(light_record(names, offsets))
    assert all(name.startswith("%LMQ%") and "/" not in name for name in found)
