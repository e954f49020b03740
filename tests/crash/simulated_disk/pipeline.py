"""The pipeline with a running writer, without Spark: prepare, and one draining epoch of each task."""

from __future__ import annotations

import functools
from pathlib import Path

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.epoch import run_share
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.prepare import prepare
from tidemark.store.storage import DiskStorage, Storage

INDEX_SLOTS, INDEX_ENTRIES = 16, 24


@functools.cache
def plan_of(root: Path) -> EpochPlan:
    """Return a plan with small files; the sizes are set explicitly, so that a folder's plan never changes."""
    settings = PipelineSettings(
        store_root=root,
        epoch_ms=0,
        shards=1,
        commit_log_segment_size_bytes=None,
        consume_queue_file_size_bytes=400,
        batch_consume_queue_file_size_bytes=92,
        index_slots=INDEX_SLOTS,
        index_entries=INDEX_ENTRIES,
        chunk_size_bytes=4096,
        durable_interval_ms=10_000,
    )
    root.mkdir(parents=True, exist_ok=True)
    plan = make_plan(settings)
    assert (plan.consume_queue_size, plan.batch_consume_queue_size, plan.index_slots) == (400, 92, INDEX_SLOTS)
    return plan


def drain(root: Path, storage: Storage | None = None) -> None:
    """Start, build the committed data, make it durable, stop."""
    storage = storage or DiskStorage()
    plan = plan_of(root)
    storage.make_folder(plan.paths.indexer)
    prepare(plan, storage)
    follow(root, storage)


def follow(root: Path, storage: Storage | None = None) -> None:
    """Run one epoch of a started pipeline, as one task that follows a shard of queues and the key index."""
    plan = plan_of(root)
    run_share(plan, range(plan.all_shards), follower=0, storage=storage)
