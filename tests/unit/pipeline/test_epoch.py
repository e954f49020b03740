"""One epoch of a task, in this process."""

from __future__ import annotations

import os
from pathlib import Path

from services.indexer.pipeline.epoch import run_epoch
from tests.builders import write_log
from tests.pipeline_runs import build, plan_of


def open_files(root: Path) -> list[str]:
    """Files of the store that this process has open."""
    links = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return sorted(os.readlink(link) for link in links if os.path.exists(link) and str(root) in os.readlink(link))


def test_an_epoch_leaves_no_file_open(tmp_path: Path) -> None:
    """A worker of Spark's runs thousands of them."""
    write_log(tmp_path / "commitlog", 8192, ({"topic": b"t", "queue_offset": i} for i in range(9)))
    plan = plan_of(tmp_path, index_slots=16, index_entries=64, consume_queue_file_size_bytes=200)
    build(plan)
    for shard in range(plan.tasks):
        run_epoch(plan, shard=shard, follower=0)
    assert open_files(tmp_path) == []
