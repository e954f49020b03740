"""Predicted and counted open files of the pipeline's task and the query service's reader, in this process."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
import time
from pathlib import Path

import pytest

from benchmarks.scale import memory
from services.indexer.pipeline.epoch import run_share
from services.indexer.pipeline.plan import EpochPlan
from tests.builders import properties, write_log
from tests.pipeline_runs import build, plan_of
from tests.unit.benchmarks.scale.constants_of import constants_of
from tidemark.read.pull import PullRequest, pull
from tidemark.read.store_reader import StoreReader
from tidemark.store.marks import Marks

FREE = constants_of()
SEGMENT = 8192
MESSAGES = 120  # fill about three segments


def make_log(root: Path, queues: int) -> EpochPlan:
    records = (
        {
            "topic": b"t",
            "queue_id": i % queues,
            "queue_offset": i // queues,
            "properties": properties({"KEYS": f"k{i}"}),
        }
        for i in range(MESSAGES)
    )
    write_log(root / "commitlog", SEGMENT, records)
    return plan_of(root, index_slots=64, index_entries=1024, consume_queue_file_size_bytes=20_000)


def segments(plan: EpochPlan) -> int:
    return len(list((plan.root / "commitlog").iterdir()))


def open_in(folder: Path) -> int:
    """Count the files below *folder* that this process has open."""
    links = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return sum(str(folder) in os.readlink(link) for link in links if os.path.exists(link))


def open_while_following(root: Path, queues: int) -> tuple[int, int]:
    """Return the numbers of open files and of log segments."""
    plan = make_log(root, queues)
    plan.paths.indexer.mkdir(parents=True)
    following = dataclasses.replace(plan, epoch_ms=600_000)
    thread = threading.Thread(target=run_share, args=(following, [0, 1]), kwargs={"follower": 0})
    thread.start()
    try:
        _wait_until_built(plan)
        return _least_open_in(root), segments(plan)
    finally:
        plan.stop_flag.touch()
        thread.join()


def _least_open_in(folder: Path) -> int:
    """Return the least of several counts, because the follower opens some files only for a moment."""
    counts = []
    for _ in range(20):
        counts.append(open_in(folder))
        time.sleep(0.01)
    return min(counts)


def _wait_until_built(plan: EpochPlan) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):  # the file is just being created
            marks = Marks.open_read_only(plan.paths.marks)
            visible = min(marks.visible(shard) for shard in range(plan.all_shards))
            marks.close()
            if visible == plan.limit:
                return
        time.sleep(0.02)
    raise AssertionError("not built")


def test_the_worker_opens_a_file_for_each_queue_and_segment(tmp_path: Path) -> None:
    """A worker has some further files open, independent of queues and segments."""
    (few, walked), (many, walked_too) = (open_while_following(tmp_path / str(n), n) for n in (2, 40))
    told = [memory.worker_files(n, walked, FREE) for n in (2, 40)]
    assert walked == walked_too > 1
    assert many - few == told[1] - told[0] == 38
    assert few > told[0]  # marks, locks, the index, the ledger


@pytest.mark.parametrize("queues", [2, 30])
def test_a_reader_opens_a_file_for_each_queue_and_segment(tmp_path: Path, queues: int) -> None:
    """Only queues that were requested count."""
    plan = make_log(tmp_path, queues)
    build(plan)
    before = open_in(tmp_path)
    reader = StoreReader(tmp_path)
    opened = open_in(tmp_path) - before  # marks
    watermark = reader.watermark()
    for queue in reader.queues("t"):
        bounds = reader.bounds(queue, watermark)
        answer = pull(queue, reader.log, bounds, PullRequest(offset=0, max_messages=MESSAGES, max_bytes=1 << 20))
        assert answer.message_count == MESSAGES // queues
    assert open_in(tmp_path) - before - opened == memory.query_files(queues, segments(plan), FREE)
