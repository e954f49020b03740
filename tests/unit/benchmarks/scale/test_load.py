"""The load of one pair, with round numbers."""

from __future__ import annotations

import math

import pytest

from benchmarks.scale import sizes
from benchmarks.scale.load import (
    Load,
    query_cores,
    queues_touched,
    sync_share,
    task_cores,
    visible_s,
    writer_cores,
    written_bytes_a_s,
)
from benchmarks.scale.workload import Workload
from tests.unit.benchmarks.scale.constants_of import constants_of

LOAD = Load(messages_a_s=1000, batches_a_s=10, records_a_s=1000, bytes_a_s=1e6, keys_a_s=2000, queues=4, is_inner=False)


def test_a_pair_has_its_share_of_the_busiest_minute() -> None:
    """86,400 messages a day are one a second; the busiest minute has three times as many."""
    load = Load.of(Workload(864_000, 100, peak=3, batch=5, queues=9), pairs=2)
    assert (load.messages_a_s, load.batches_a_s, load.records_a_s, load.queues) == (15, 3, 15, 5)
    assert load.bytes_a_s == 15 * sizes.record_bytes(Workload(0, 100))


def test_the_writer_pays_for_batches_messages_and_bytes() -> None:
    """They cost 10 ms, 100 ms and 200 ms of a second."""
    constants = constants_of(writer_s_a_batch=1e-3, writer_s_a_message=1e-4, writer_s_a_byte=2e-7)
    assert writer_cores(LOAD, constants) == pytest.approx(0.31)


def test_each_of_several_tasks_walks_the_whole_log() -> None:
    """The walk costs 0.1; the queues' additional 0.4 is shared; the index is a separate task."""
    constants = constants_of(walk_s_a_byte=1e-7, queues_s_a_byte=5e-7, index_s_a_key=1e-4)
    assert task_cores(LOAD, constants, 1) == pytest.approx((0.7, 0))
    assert task_cores(LOAD, constants, 4) == pytest.approx((0.2, 0.3))


def test_readers_pay_for_bytes_answers_and_json() -> None:
    """The answers have two megabytes and a bit, one megabyte each; 500 messages are JSON."""
    constants = constants_of(query_s_a_byte=1e-7, query_s_a_request=1e-2, query_s_a_json_message=1e-4)
    workload = Workload(0, 100, readers=2, json_readers=0.5)
    assert query_cores(LOAD, workload, constants) == pytest.approx(0.2 + 2e6 / 2**20 * 1e-2 + 0.05)


def test_few_batches_touch_few_queues() -> None:
    """Many batches touch all queues; there is one durable mark a second."""
    few = Load(10, 10, 10, 0, 0, queues=1_000_000, is_inner=False)
    many = Load(1e6, 1e6, 1e6, 0, 0, queues=100, is_inner=False)
    assert queues_touched(few) == pytest.approx(10, rel=1e-4)
    assert queues_touched(many) == pytest.approx(100)
    assert sync_share(many, constants_of(fdatasync_s=1e-3), 2) == pytest.approx(0.051)


def test_written_bytes_include_journal_units_and_index_pages() -> None:
    """Per batch: 32 bytes of journal, 20 of unit, 20 of entry, a page per touched queue and per touched slot page."""
    load = Load(1000, 1e6, 1000, 1e6, 1, queues=2, is_inner=False)
    expected = 1e6 + 32e6 + 20_000 + 2 * 4096 + 20 + 4096
    assert written_bytes_a_s(load, Workload(0, 100)) == pytest.approx(expected, rel=1e-4)


def test_latency_doubles_at_half_utilisation() -> None:
    """A resource that is always busy never finishes."""
    constants = constants_of(visible_s=0.004)
    assert visible_s(0.5, constants) == pytest.approx(0.008)
    assert visible_s(1, constants) == math.inf
