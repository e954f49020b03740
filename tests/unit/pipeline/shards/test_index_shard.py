"""The builder of the key index, part by part, without an epoch around it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.indexer.pipeline.plan import EpochPlan
from services.indexer.pipeline.shards.index_shard import IndexShard
from tests.builders import Placed, properties, write_log
from tests.pipeline_runs import index_contents, plan_of
from tests.unit.pipeline.keyed_log import LOG_FILE, SETTINGS, indexed_offsets, write_keyed_log
from tidemark.index.key_index import index_files
from tidemark.index.log_walk import LogPart, LogWalk
from tidemark.index.rebuild_request import RebuildRequest
from tidemark.store.storage import DiskStorage

COUNT = 120  # three index files and a part of a fourth
STORAGE = DiskStorage()


@pytest.fixture
def placed(tmp_path: Path) -> list[Placed]:
    return write_keyed_log(tmp_path, COUNT)


@pytest.fixture
def plan(tmp_path: Path, placed: list[Placed]) -> EpochPlan:
    return plan_of(tmp_path, **SETTINGS)


@pytest.fixture
def whole(tmp_path: Path) -> list[bytes]:
    """Return the index files of a builder that was never interrupted."""
    root = tmp_path / "whole"
    write_keyed_log(root, COUNT)
    plan = plan_of(root, **SETTINGS)
    shard = IndexShard(plan, STORAGE)
    for part in parts(plan, shard):
        shard.apply(part)
    shard.close()
    return index_contents(root)


def parts(plan: EpochPlan, shard: IndexShard, *, start: int = 0, stop: int | None = None) -> Iterator[LogPart]:
    """Walk the log as the shard reads it. A part is valid until the next one."""
    walk = LogWalk(plan.open_log(), start, shard.checker(), chunk_size_bytes=plan.chunk_size)
    end = plan.limit if stop is None else stop
    assert end is not None
    try:
        yield from walk.parts(limit=end, floor=end)
    finally:
        walk.close()


def apply_all(plan: EpochPlan, shard: IndexShard, *, start: int = 0, stop: int | None = None) -> None:
    for part in parts(plan, shard, start=start, stop=stop):
        shard.apply(part)


def test_every_key_is_indexed_in_the_order_of_the_log(plan: EpochPlan, placed: list[Placed]) -> None:
    shard = IndexShard(plan, STORAGE)
    assert sum(shard.apply(part) for part in parts(plan, shard)) == COUNT
    shard.close()
    assert indexed_offsets(plan.root) == [record.physical_offset for record in placed]


def test_keys_of_records_with_a_damaged_body_are_indexed(tmp_path: Path) -> None:
    """Keys do not depend on bodies: the queue shard alone verifies bodies and reports the damage."""
    damaged = {"properties": properties({"KEYS": "k"}), "body_crc": 1}
    last = write_log(tmp_path / "commitlog", LOG_FILE, [damaged] * 3)[-1]
    plan = plan_of(tmp_path, **SETTINGS)
    shard = IndexShard(plan, STORAGE)
    (part,) = parts(plan, shard, stop=last.physical_offset + len(last.data))
    assert shard.apply(part) == 3
    assert not part.damages and not part.requests["fault"].any()
    shard.close()


def test_parts_that_are_held_back_give_the_same_files(plan: EpochPlan, whole: list[bytes]) -> None:
    """They are written before the part that is applied next, and their keys are counted then."""
    shard, counts = IndexShard(plan, STORAGE), []
    for number, part in enumerate(parts(plan, shard)):
        if number % 3 == 2 or not shard.hold_back(part):
            counts.append(shard.apply(part))
    counts.append(shard.apply(part._replace(requests=part.requests[:0])))
    shard.close()
    assert sum(counts) == COUNT
    assert index_contents(plan.root) == whole


def test_the_parts_that_are_held_back_are_limited(plan: EpochPlan) -> None:
    """A builder that is killed loses only these, and they are in memory."""
    shard = IndexShard(plan, STORAGE)
    walked = parts(plan, shard)
    part = next(walked)
    held = [shard.hold_back(part) for _ in range(100)]
    assert held[0] and not held[-1]
    assert held == sorted(held, reverse=True), "no part is held back after one was refused"
    shard.close()


def test_a_chunk_whose_builder_was_killed_before_it_was_published_is_not_indexed_twice(
    plan: EpochPlan, placed: list[Placed], whole: list[bytes]
) -> None:
    mark, intended = placed[30].physical_offset, placed[50].physical_offset
    killed = IndexShard(plan, STORAGE)
    apply_all(plan, killed, stop=intended)
    killed.close()
    shard = IndexShard(plan, STORAGE)
    assert shard.begin(mark, intended=intended) == mark
    apply_all(plan, shard, start=mark)
    shard.close()
    assert index_contents(plan.root) == whole


def test_slots_that_a_killed_builder_wrote_without_the_header_are_repaired(
    plan: EpochPlan, placed: list[Placed], whole: list[bytes]
) -> None:
    """Bytes are written in the order entries, slots, header (docs/format.md §6)."""
    mark, intended = placed[20].physical_offset, placed[35].physical_offset
    killed = IndexShard(plan, STORAGE)
    apply_all(plan, killed, stop=mark)
    (path,) = index_files(plan.paths.index)
    header = path.read_bytes()[:40]
    apply_all(plan, killed, start=mark, stop=intended)
    killed.close()
    with path.open("r+b") as file:
        file.write(header)
    shard = IndexShard(plan, STORAGE)
    shard.begin(mark, intended=intended)
    apply_all(plan, shard, start=mark)
    shard.close()
    assert index_contents(plan.root) == whole


def test_a_holder_that_resumes_after_its_lease_ended_cannot_change_the_index(
    plan: EpochPlan, placed: list[Placed]
) -> None:
    mark = placed[20].physical_offset
    stale = IndexShard(plan, STORAGE)
    apply_all(plan, stale, stop=mark)
    successor = IndexShard(plan, STORAGE)
    successor.disown()
    before = index_contents(plan.root)
    apply_all(plan, stale, start=mark, stop=placed[30].physical_offset)
    stale.close()
    assert index_contents(plan.root) == before
    successor.begin(mark, intended=mark)
    apply_all(plan, successor, start=mark, stop=placed[22].physical_offset)
    successor.close()
    assert indexed_offsets(plan.root) == [record.physical_offset for record in placed[:22]]


def test_a_rebuild_continues_after_the_files_that_were_kept(
    plan: EpochPlan, placed: list[Placed], whole: list[bytes]
) -> None:
    """The newest files were set aside while the shard had one of them open."""
    shard = IndexShard(plan, STORAGE)
    apply_all(plan, shard)
    kept, *lost = index_files(plan.paths.index)
    for path in lost:
        path.unlink()
    position = placed[38].physical_offset  # of the last of 39 keys, as `take_request` finds it
    shard.begin_rebuild(RebuildRequest(first=lost[0].name, position=position), position)
    apply_all(plan, shard, start=position)
    shard.end_rebuild()
    shard.close()
    assert index_files(plan.paths.index)[0] == kept
    assert index_contents(plan.root) == whole


class CountedSyncs(DiskStorage):
    """A disk that counts the syncs of files."""

    syncs = 0

    def fdatasync(self, descriptor: int) -> None:
        self.syncs += 1
        super().fdatasync(descriptor)


def test_written_keys_are_synced_once(plan: EpochPlan) -> None:
    disk = CountedSyncs()
    shard = IndexShard(plan, disk)
    shard.take_sync()()
    assert disk.syncs == 0, "nothing was written"
    apply_all(plan, shard)
    full_files = disk.syncs
    shard.take_sync()()
    shard.take_sync()()
    assert disk.syncs == full_files + 1
    shard.close()
