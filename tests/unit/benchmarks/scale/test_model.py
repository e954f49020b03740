"""Needs, limits and numbers of pairs, with constants of which one is decisive."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from benchmarks.scale import model, sizes
from benchmarks.scale.workload import DAY_S, Machine, Workload
from tests.unit.benchmarks.scale.constants_of import constants_of

MACHINE = Machine(cores=4, memory_bytes=1e15, disk_bytes=1e18, most=0.5)
WORKLOAD = Workload(1000 * DAY_S, 100, peak=1, batch=10, keys=0, queues=8, readers=0, retention_days=1)


def test_pairs_are_as_many_as_the_writer_needs() -> None:
    """1,000 messages a second at 2 ms each need two cores; a pair may use half a core."""
    found = model.plan(WORKLOAD, MACHINE, constants_of(writer_s_a_message=2e-3))
    assert (found.pairs, found.needs[0].resource) == (4, "writer's core")
    assert found.needs[0].share == pytest.approx(1)
    assert found.load.messages_a_s == 250


def test_shards_are_added_before_pairs() -> None:
    """As many tasks as there are cores share the queues' additional cost."""
    constants = constants_of(walk_s_a_record=1e-4, queues_s_a_record=1.1e-3)
    found = model.plan(WORKLOAD, MACHINE, constants)
    assert (found.pairs, found.shards, found.fits) == (1, 3, True)
    walk_alone = model.plan(replace(WORKLOAD, messages_a_day=8000 * DAY_S), MACHINE, constants)
    assert walk_alone.pairs > 1


def test_retention_determines_the_pairs_on_a_small_disk() -> None:
    """A day's log, units and index fill 85 % of each disk."""
    kept = sizes.stored_bytes(WORKLOAD, WORKLOAD.messages_a_day)
    found = model.plan(WORKLOAD, replace(MACHINE, disk_bytes=kept / 3), constants_of())
    assert (found.pairs, found.needs[0].resource) == (4, "disk")


def test_one_pair_fewer_does_not_fit() -> None:
    """The number of pairs is the minimum."""
    constants = constants_of(writer_s_a_byte=1e-7, queues_s_a_byte=2e-7)
    workload = replace(WORKLOAD, messages_a_day=1e6 * DAY_S)
    found = model.plan(workload, MACHINE, constants)
    assert found.pairs > 1 and found.fits
    assert not model.plan_of(workload, MACHINE, constants, found.pairs - 1).fits


def test_a_resource_is_used_up_at_its_rate() -> None:
    """The resource is half a core at 2 ms a message; a resource without cost is never used up."""
    constants = constants_of(writer_s_a_message=2e-3)
    assert model.greatest_rate(WORKLOAD, MACHINE, constants, "writer's core") == pytest.approx(250)
    assert model.greatest_rate(WORKLOAD, MACHINE, constants, "core of the key index") == math.inf


def test_a_rebuild_takes_as_long_as_the_slower_of_two() -> None:
    """For 1,000 messages: queues 2 s, walk 1 s, keys 3 s; the disk counts if the log is not in memory."""
    workload = replace(WORKLOAD, keys=2)
    constants = constants_of(
        queues_s_a_record=2e-3, walk_s_a_record=1e-3, index_s_a_key=1e-3, rebuild_start_s=0.5, disk_read_bytes_a_s=1e3
    )
    assert model.rebuild_s(workload, 1000, constants) == pytest.approx(4.5)
    disk = sizes.log_bytes(workload, 1000) / 1e3
    assert model.rebuild_s(workload, 1000, constants, from_disk=True) == pytest.approx(0.5 + disk)


def test_many_cores_scan_first_and_then_build() -> None:
    """For 1,000 messages: a walk of 1 s on ten cores, then 1 s of units in parallel with 3 s of keys."""
    workload = replace(WORKLOAD, keys=2)
    constants = constants_of(queues_s_a_record=2e-3, walk_s_a_record=1e-3, index_s_a_key=1e-3)
    assert model.rebuild_s(workload, 1000, constants, cores=10) == pytest.approx(0.1 + 3)


def test_a_lookup_reads_every_index_file() -> None:
    """There are three files; a cold lookup reads a page of slots and four of entries in each."""
    messages = 2.5 * sizes.DEFAULT_FILES.index_entries  # one UNIQ_KEY each
    constants = constants_of(lookup_s=1e-3, lookup_s_a_file=1e-4, disk_read_s=1e-2)
    assert tuple(model.lookup(WORKLOAD, messages, constants)) == pytest.approx((1.2e-3, 1.2e-3 + 3 * 5 * 1e-2))


def test_each_need_names_a_remedy() -> None:
    """Each limit names a remedy."""
    assert all(need.moves and need.most > 0 for need in model.needs_of(WORKLOAD, MACHINE, constants_of()).values())
