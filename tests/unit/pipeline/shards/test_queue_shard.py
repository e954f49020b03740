"""Queue shards with deleted topics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Placed, write_log
from tests.pipeline_runs import build, plan_of, queue_files
from tidemark.errors import TopicNotFoundError
from tidemark.read.store_reader import StoreReader
from tidemark.store.originals.tombstones import Tombstone, save_tombstones
from tidemark.store.storage import DiskStorage

SETTINGS: dict[str, Any] = {"consume_queue_file_size_bytes": 200, "batch_consume_queue_file_size_bytes": 460}
BEFORE, AFTER = 12, 5


def make_log(root: Path, count: int) -> list[Placed]:
    """Write numbered records of one queue; a second call writes the same bytes again."""
    return write_log(root / "commitlog", 65_536, ({"topic": b"orders", "queue_offset": i} for i in range(count)))


def set_type(root: Path, queue_type: str | None) -> None:
    """Write topics.json with `orders` of this type, or without it."""
    topic = {"topicName": "orders", "readQueueNums": 1, "writeQueueNums": 1, "attributes": {"queue.type": queue_type}}
    (root / "config").mkdir(parents=True, exist_ok=True)
    table = {"orders": topic} if queue_type else {}
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))


def delete_topic(root: Path, at: int) -> None:
    (root / "tidemark" / "writer").mkdir(parents=True, exist_ok=True)
    save_tombstones(
        root / "tidemark" / "writer" / "tombstones.json", [Tombstone("orders", at, {0: BEFORE})], DiskStorage()
    )
    set_type(root, None)


def test_a_topic_recreated_with_another_type_is_built_as_new(tmp_path: Path) -> None:
    """Its old files are removed, the numbering continues, and a rebuild from nothing gives the same bytes."""
    grown, fresh = tmp_path / "grown", tmp_path / "fresh"
    placed = make_log(grown, BEFORE)
    set_type(grown, "BatchCQ")
    build(plan_of(grown, **SETTINGS))
    assert [path.split("/")[0] for path in queue_files(grown)] == ["batchconsumequeue"] * 2  # ten units a file
    end = placed[-1].physical_offset + len(placed[-1].data)

    for root in (grown, fresh):
        make_log(root, BEFORE + AFTER)
        delete_topic(root, end)
        set_type(root, "SimpleCQ")
        build(plan_of(root, **SETTINGS))
    assert queue_files(grown) == queue_files(fresh)
    (only,) = queue_files(grown).items()
    assert only[0] == f"consumequeue/orders/0/{200:020d}"  # units 10 and 11 are pre-blank, 12 to 16 live
    assert [int.from_bytes(only[1][at + 8 : at + 12], "big") for at in range(0, 160, 20)] == [
        *[0x7FFFFFFF] * 2,
        *[len(placed[0].data)] * AFTER,
        0,
    ]


def test_records_of_a_deleted_topic_are_not_built(tmp_path: Path) -> None:
    """Without its attribute they would count as simple ones and contradict the existing files."""
    placed = make_log(tmp_path, BEFORE)
    delete_topic(tmp_path, placed[-1].physical_offset + len(placed[-1].data))
    build(plan_of(tmp_path, **SETTINGS))
    assert queue_files(tmp_path) == {}


@pytest.mark.parametrize("queue_type", ["SimpleCQ", "BatchCQ"])
def test_queue_files_of_a_deleted_topic_are_deleted(tmp_path: Path, queue_type: str) -> None:
    """A rebuild removes them too: readers would see the topic, and a broker would see a wrong type."""
    placed = make_log(tmp_path, BEFORE)
    set_type(tmp_path, queue_type)
    build(plan_of(tmp_path, **SETTINGS))
    assert queue_files(tmp_path)
    delete_topic(tmp_path, placed[-1].physical_offset + len(placed[-1].data))
    build(plan_of(tmp_path, **SETTINGS))
    assert queue_files(tmp_path) == {}
    assert StoreReader(tmp_path).topics() == {}
    with pytest.raises(TopicNotFoundError):
        StoreReader(tmp_path).topic("orders")
