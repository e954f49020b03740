"""Run the pipeline's epochs in this process, without Spark: its tasks' work on any store and storage."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.epoch import run_epoch
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.prepare import drop_above, prepare
from services.indexer.pipeline.shards.shard_builder import ShardProgress
from services.indexer.pipeline.spark.scan import ranges_to_build, scan_planned
from tidemark.index.end_of_log import find_end_of_log
from tidemark.index.scan.log_range import ScannedRanges
from tidemark.store.storage import DiskStorage, Storage

GOLDEN_SETTINGS: dict[str, dict[str, Any]] = {  # the file sizes that the broker of each golden store used
    "mixed/store": {
        "consume_queue_file_size_bytes": 20_000,
        "batch_consume_queue_file_size_bytes": 46_000,
        "index_slots": 500,
        "index_entries": 2_000,
    },
    "killed/store-recovered": {
        "consume_queue_file_size_bytes": 4_000,
        "batch_consume_queue_file_size_bytes": 4_600,
        "index_slots": 100,
        "index_entries": 400,
    },
    "killed/store-killed": {
        "consume_queue_file_size_bytes": 4_000,
        "batch_consume_queue_file_size_bytes": 4_600,
        "index_slots": 100,
        "index_entries": 400,
    },
    "expired/store": {
        "consume_queue_file_size_bytes": 2_000,
        "batch_consume_queue_file_size_bytes": 2_300,
        "index_slots": 100,
        "index_entries": 400,
    },
}
DERIVED = ("consumequeue", "batchconsumequeue", "index")


def plan_of(root: Path, **settings: Any) -> EpochPlan:
    """Return a draining plan for a store without a running writer; its end is found by recovery's rule."""
    return make_plan(PipelineSettings(store_root=root, once=True, **settings), limit=end_of(root, **settings))


def end_of(root: Path, **settings: Any) -> int:
    """Return the end of the log of a store without a running writer."""
    plan = make_plan(PipelineSettings(store_root=root, once=True, **settings))
    log = plan.open_log()
    end = find_end_of_log(plan.paths, log)
    log.close()
    return end


def build(
    plan: EpochPlan, storage: Storage | None = None, *, scan_range_size_bytes: int | None = None
) -> list[ShardProgress]:
    """Prepare, and drain every shard as `--once` does, from a scan in ranges of *scan_range_size_bytes* if given."""
    storage = storage or DiskStorage()
    storage.make_folder(plan.paths.indexer)
    prepare(plan, storage)
    if plan.limit is not None:
        drop_above(plan, plan.limit, storage)
    if scan_range_size_bytes is not None:
        plan = scanned(plan, scan_range_size_bytes)
    return [run_epoch(plan, shard=shard, follower=0, storage=storage) for shard in range(plan.all_shards)]


def scanned(plan: EpochPlan, range_size_bytes: int) -> EpochPlan:
    """Return the plan with its whole log scanned in several ranges."""
    ranges = ranges_to_build(plan, size_bytes=range_size_bytes)
    assert len(ranges) > 1
    plan = replace(plan, scanned=ScannedRanges(plan.scan_folder, ranges))
    plan.scan_folder.mkdir()
    for number in range(len(ranges)):
        scan_planned(plan, number)
    return plan


def without_derived(store: Path, target: Path) -> Path:
    """Copy *store* without its queue files and index."""
    return Path(shutil.copytree(store, target, ignore=shutil.ignore_patterns(*DERIVED)))


def queue_files(root: Path) -> dict[str, bytes]:
    """Return every queue file by its path below *root*."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for folder in DERIVED[:2]
        for path in sorted((root / folder).rglob("*"))
        if path.is_file()
    }


def index_contents(root: Path) -> list[bytes]:
    """Return the contents of the index files, oldest first. Their names are times."""
    return [path.read_bytes() for path in sorted((root / "index").iterdir())]
