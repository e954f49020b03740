"""One epoch of a task, in this process."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.epoch import run_epoch, run_share
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.shards import index_shard
from services.indexer.pipeline.shards.shard_builder import ShardBuilder
from tests.builders import properties, write_log
from tests.open_files import open_files
from tests.pipeline_runs import build, index_contents, plan_of, queue_files
from tests.waiting import until
from tidemark.errors import StoreContradictionError
from tidemark.format.index_file import decode_header, entry_at
from tidemark.format.index_layout import ENTRY, HEADER_SIZE
from tidemark.index.log_walk import LogPart
from tidemark.index.rebuild_request import request_queues
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage


def test_an_epoch_leaves_no_file_open(tmp_path: Path) -> None:
    """A Spark worker runs thousands of epochs."""
    write_log(tmp_path / "commitlog", 8192, ({"topic": b"t", "queue_offset": i} for i in range(9)))
    plan = plan_of(tmp_path, index_slots=16, index_entries=64, consume_queue_file_size_bytes=200)
    build(plan)
    for shard in range(plan.all_shards):
        run_epoch(plan, shard=shard, follower=0)
    assert open_files(tmp_path) == []


COUNT = 400
SIZES = {"index_slots": 16, "index_entries": 64, "consume_queue_file_size_bytes": 200, "chunk_size_bytes": 4096}


def keyed_log(root: Path) -> EpochPlan:
    records = ({"topic": b"t", "queue_offset": i, "properties": properties({"KEYS": f"k{i}"})} for i in range(COUNT))
    write_log(root / "commitlog", 8192, records)
    return plan_of(root, **SIZES)


def indexed(root: Path) -> list[int]:
    """Return the physical offsets of the key index's entries, over all files."""
    places: list[int] = []
    for content in index_contents(root):
        count = decode_header(content[:HEADER_SIZE]).index_count
        entries = np.frombuffer(content, ENTRY, offset=entry_at(SIZES["index_slots"], 0))
        places += entries["physical_offset"][1:count].tolist()
    return places


def test_shards_that_share_a_walk_build_the_same_files_as_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They start at different positions: the slower one catches up first, then both take every part of one walk.

    Keys that are held back over several parts are written at the end of a part.
    """
    with monkeypatch.context() as patch:
        patch.setattr(index_shard, "_MOST_HELD_PARTS", 0)
        build(keyed_log(tmp_path / "alone"))
    monkeypatch.setattr(index_shard, "_MOST_HELD_PARTS", 2)
    plan = keyed_log(tmp_path / "together")
    plan.paths.indexer.mkdir(parents=True)
    built: list[tuple[int, int, int]] = []  # shard, records and end of each part
    publish = ShardBuilder._publish

    def noted(builder: ShardBuilder, part: LogPart) -> None:
        built.append((builder._number, len(part.requests), part.end_offset))
        publish(builder, part)
        if len(built) == 3:
            raise InterruptedError("killed")

    monkeypatch.setattr(ShardBuilder, "_publish", noted)
    with pytest.raises(InterruptedError):
        run_epoch(plan, shard=0, follower=0)
    queues, keys = run_share(plan, [0, 1], follower=0)
    assert (queues.end_offset, keys.end_offset) == (plan.limit, plan.limit)
    assert queues.start_offset > keys.start_offset == 0
    assert (queues.records, keys.records) == (COUNT - sum(records for _, records, _ in built[:3]), COUNT)
    ends = [[end for each, _, end in built[3:] if each == shard and end > queues.start_offset] for shard in (0, 1)]
    assert ends[1] == [*ends[0][2::3], *ends[0][len(ends[0]) // 3 * 3 :][-1:]]
    assert len(ends[1]) > 2
    assert queue_files(tmp_path / "together") == queue_files(tmp_path / "alone")
    assert index_contents(tmp_path / "together") == index_contents(tmp_path / "alone")


@pytest.mark.parametrize("shard", [0, 1])
def test_a_shard_behind_the_other_one_ends_a_part_where_both_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard: int
) -> None:
    plan = keyed_log(tmp_path)
    plan.paths.indexer.mkdir(parents=True)
    with (tmp_path / "commitlog" / f"{0:020d}").open("rb") as log:
        cut = 2 * int.from_bytes(log.read(4), "big")  # records 0 to 9 have the same size
    run_epoch(replace(plan, limit=cut), shard=shard, follower=0)
    ends: dict[int, list[int]] = {0: [], 1: []}
    publish = ShardBuilder._publish

    def noted(builder: ShardBuilder, part: LogPart) -> None:
        ends[builder._number].append(part.end_offset)
        publish(builder, part)

    monkeypatch.setattr(ShardBuilder, "_publish", noted)
    run_share(plan, [0, 1], follower=0)
    assert ends[1 - shard][0] == cut
    assert ends[shard][0] > cut


def test_a_rebuild_ends_where_it_began_and_all_queues_are_built_after_it(tmp_path: Path) -> None:
    """Messages are committed meanwhile. During a rebuild, only the requested queues are built."""
    for name in ("rebuilt", "whole"):
        records = ({"topic": b"t", "queue_id": i % 2, "queue_offset": i // 2} for i in range(COUNT))
        write_log(tmp_path / name / "commitlog", 8192, records)
    build(plan_of(tmp_path / "whole", **SIZES))
    plan = plan_of(tmp_path / "rebuilt", **SIZES)
    plan.paths.indexer.mkdir(parents=True)
    with (tmp_path / "rebuilt" / "commitlog" / f"{0:020d}").open("rb") as log:
        cut = 2 * int.from_bytes(log.read(4), "big")
    run_epoch(replace(plan, limit=cut), shard=0, follower=0)
    request_queues(plan.paths, {("t", 0)}, shards=1, storage=DiskStorage())
    (progress,) = run_share(plan, [0], follower=0)
    assert (progress.rebuilt, progress.start_offset) == (1, cut)
    assert queue_files(tmp_path / "rebuilt") == queue_files(tmp_path / "whole")


def test_held_back_keys_are_not_marked_as_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a builder is killed, the index holds all keys below its mark, and the next builder adds the rest."""
    build(keyed_log(tmp_path / "whole"))
    plan = keyed_log(tmp_path / "killed")
    plan.paths.indexer.mkdir(parents=True)
    held: list[bool] = []
    hold_back = index_shard.IndexShard.hold_back

    def dies(shard: index_shard.IndexShard, part: LogPart) -> bool:
        held.append(hold_back(shard, part))
        if held.count(True) == 4:
            raise InterruptedError("killed")
        return held[-1]

    monkeypatch.setattr(index_shard, "_MOST_HELD_PARTS", 2)
    with monkeypatch.context() as patch:
        patch.setattr(index_shard.IndexShard, "hold_back", dies)
        with pytest.raises(InterruptedError):
            run_epoch(plan, shard=1, follower=0)
    assert held == [True, True, False, True, True]
    marks = Marks.open_read_only(plan.paths.marks)
    mark = marks.visible(1)
    marks.close()
    built = indexed(tmp_path / "killed")
    assert 0 < len(built) < COUNT
    assert built == [place for place in indexed(tmp_path / "whole") if place < mark]
    (progress,) = run_share(plan, [1], follower=0)
    assert (progress.start_offset, progress.records) == (mark, COUNT - len(built))
    assert index_contents(tmp_path / "killed") == index_contents(tmp_path / "whole")


def test_a_stale_builder_does_not_lower_the_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another builder took over meanwhile, and its mark is higher."""
    plan = keyed_log(tmp_path)
    limit = plan.limit
    assert limit is not None
    plan.paths.indexer.mkdir(parents=True)
    note = ShardBuilder._note_index_file

    def another_publishes(builder: ShardBuilder) -> None:
        note(builder)
        builder._marks.publish(builder._number, limit)

    publish = ShardBuilder._publish

    def once(builder: ShardBuilder, part: LogPart) -> None:
        assert part.end_offset < limit
        publish(builder, part)
        raise InterruptedError("killed")

    monkeypatch.setattr(ShardBuilder, "_note_index_file", another_publishes)
    monkeypatch.setattr(ShardBuilder, "_publish", once)
    with pytest.raises(InterruptedError):
        run_epoch(plan, shard=0, follower=0)
    marks = Marks.open_read_only(plan.paths.marks)
    assert marks.visible(0) == limit
    marks.close()


def test_an_epoch_reports_the_visibility_latency_of_records(tmp_path: Path) -> None:
    """Only the first row has them, one per chunk that both shards have built; the start and stop times are set."""
    plan = keyed_log(tmp_path)
    plan.paths.indexer.mkdir(parents=True)
    began = time.monotonic()
    queues, keys = run_share(plan, [0, 1], follower=0)
    assert sum(queues.visible) == queues.chunks > 1
    assert queues.visible_s > 0
    assert (sum(keys.visible), keys.visible_s) == (0, 0)
    assert began <= queues.began_s <= queues.stopped_s <= time.monotonic()


def test_a_task_on_another_machine_is_refused_and_touches_nothing(tmp_path: Path) -> None:
    """On another machine the visible marks would look like those of an earlier boot."""
    plan = make_plan(PipelineSettings(store_root=tmp_path, once=True, spark_master="spark://there:7077"))
    assert plan.boot_id is not None
    with pytest.raises(StoreContradictionError, match="not on the driver's machine"):
        run_epoch(replace(plan, boot_id="of another one"), shard=0, follower=0)
    assert list(tmp_path.iterdir()) == []


class MeetingStorage(DiskStorage):
    """The first sync of each durable-mark thread waits for that of the other."""

    def __init__(self) -> None:
        self._meeting = threading.Barrier(2)
        self._seen: set[threading.Thread] = set()

    def fdatasync(self, descriptor: int) -> None:
        thread = threading.current_thread()
        if thread.name == "durable-marks" and thread not in self._seen:
            self._seen.add(thread)
            self._meeting.wait(timeout=10)
        super().fdatasync(descriptor)


def test_the_final_syncs_of_the_shards_of_a_task_run_concurrently(tmp_path: Path) -> None:
    """The next follower waits for the syncs, and messages wait for the next follower."""
    plan = replace(keyed_log(tmp_path), durable_interval_ms=60_000)
    plan.paths.indexer.mkdir(parents=True)
    rows = run_share(plan, [0, 1], follower=0, storage=MeetingStorage())
    marks = Marks.open_read_only(plan.paths.marks)
    assert [marks.durable(shard) for shard in (0, 1)] == [row.end_offset for row in rows] == [plan.limit] * 2
    marks.close()


def test_index_synced_is_not_set_at_a_hand_over_while_keys_arrive(tmp_path: Path) -> None:
    """The successor would have to revoke it in a sync that delays its first message. A quiet epoch reports it."""
    plan = replace(keyed_log(tmp_path), epoch_ms=100)
    plan.paths.indexer.mkdir(parents=True)
    marks = Marks.open_to_write(plan.paths.marks, DiskStorage(), shards=plan.all_shards, term=0)
    followers = [threading.Thread(target=run_share, args=(plan, [0, 1]), kwargs={"follower": i % 2}) for i in range(3)]
    followers[0].start()
    until(lambda: marks.visible(1) == plan.limit)
    followers[1].start()
    followers[0].join(timeout=10)
    assert marks.durable(1) == plan.limit
    assert not marks.is_index_synced
    followers[2].start()
    followers[1].join(timeout=10)
    assert marks.is_index_synced
    plan.stop_flag.touch()
    followers[2].join(timeout=10)
    assert not any(follower.is_alive() for follower in followers)
    marks.close()
