"""The plan of an epoch: sizes of existing files override defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import make_plan
from tidemark.errors import StoreContradictionError


def file_of(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


def test_a_new_store_gets_rocketmqs_sizes(tmp_path: Path) -> None:
    """They are RocketMQ's defaults (MessageStoreConfig)."""
    plan = make_plan(PipelineSettings(store_root=tmp_path))
    assert (plan.consume_queue_size, plan.batch_consume_queue_size) == (6_000_000, 13_800_000)
    assert (plan.index_slots, plan.index_entries) == (5_000_000, 20_000_000)
    assert plan.open_log().file_size == 1 << 30


def test_sizes_follow_the_existing_files(tmp_path: Path) -> None:
    """A store with other sizes needs no settings; 10 slots and 40 entries make an index file of 880 bytes."""
    file_of(tmp_path / "commitlog" / f"{0:020d}", 8192)
    file_of(tmp_path / "consumequeue" / "orders" / "3" / f"{0:020d}", 400)
    file_of(tmp_path / "batchconsumequeue" / "audit" / "0" / f"{0:020d}", 460)
    file_of(tmp_path / "index" / "20260101000000000", 40 + 10 * 4 + 40 * 20)
    plan = make_plan(PipelineSettings(store_root=tmp_path))
    assert (plan.consume_queue_size, plan.batch_consume_queue_size) == (400, 460)
    assert (plan.index_slots, plan.index_entries) == (10, 40)
    assert plan.open_log().file_size == 8192


def test_a_configured_size_that_contradicts_the_files_is_refused(tmp_path: Path) -> None:
    """Nothing is read with a wrong size."""
    file_of(tmp_path / "commitlog" / f"{0:020d}", 8192)
    with pytest.raises(StoreContradictionError):
        make_plan(PipelineSettings(store_root=tmp_path, commit_log_segment_size_bytes=4096)).open_log()


def test_a_queue_file_holds_whole_units(tmp_path: Path) -> None:
    """The size is rounded up to a multiple of 20 bytes, as in RocketMQ (docs/format.md §4)."""
    plan = make_plan(PipelineSettings(store_root=tmp_path, consume_queue_file_size_bytes=4096))
    assert plan.consume_queue_size == 4100


@pytest.mark.parametrize(
    ("settings", "shares"),
    [
        ({}, [[0, 1]]),
        ({"shards": 2}, [[0], [1], [2]]),
        ({"once": True}, [[0], [1]]),  # a drain uses all cores
    ],
)
def test_a_single_queue_shard_shares_a_task_with_the_key_index(
    tmp_path: Path, settings: dict[str, Any], shares: list[list[int]]
) -> None:
    """One process wakes up for a message, not two."""
    assert make_plan(PipelineSettings(store_root=tmp_path, **settings)).shares == shares
