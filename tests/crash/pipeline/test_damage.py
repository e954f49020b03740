"""A record damaged on disk: the ledger names it, the rest is indexed, and the query service serves it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import make_plan
from tests.builders import Placed, properties, write_log
from tests.pipeline_runs import build
from tests.query_server import serve_query
from tidemark.index.ledger import read_ledger
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.storage import DiskStorage

COUNT, BAD = 30, 17
SETTINGS: dict[str, Any] = {"index_slots": 16, "index_entries": 64, "consume_queue_file_size_bytes": 2000}
BODY_AT, TOPIC_AT = 88, 89 + 8


def committed_store(root: Path, *, property_crc: bool = False) -> list[Placed]:
    """Return a log of 30 committed records in one queue: an error below its end is damage, not a torn tail."""
    placed = write_log(
        root / "commitlog",
        8192,
        (
            {
                "topic": b"orders",
                "body": b"body%04d" % i,
                "queue_offset": i,
                "properties": properties({"KEYS": f"k{i}"}),
                "property_crc": property_crc,
            }
            for i in range(COUNT)
        ),
    )
    checkpoint = Checkpoint.open_to_write(root / "checkpoint", DiskStorage())
    checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, placed[-1].physical_offset + len(placed[-1].data))
    checkpoint.close()
    table = {"orders": {"topicName": "orders", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}}
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    return placed


def damage(root: Path, record: Placed, at: int, value: int | None = None) -> None:
    """Change one byte of *record* on disk."""
    start = record.physical_offset - record.physical_offset % 8192
    with (root / "commitlog" / f"{start:020d}").open("r+b") as file:
        file.seek(record.physical_offset - start + at)
        file.write(bytes([record.data[at] ^ 0x40 if value is None else value]))


def build_committed(root: Path) -> None:
    plan = make_plan(PipelineSettings(store_root=root, once=True, **SETTINGS), limit=None)
    checkpoint = Checkpoint.open_read_only(plan.paths.checkpoint)
    limit = checkpoint.committed_offset
    checkpoint.close()
    build(make_plan(PipelineSettings(store_root=root, once=True, **SETTINGS), limit=limit))


@pytest.mark.parametrize(
    ("at", "reason"),
    [(BODY_AT, "BODY_CRC"), (4, "MAGIC"), (0, "LENGTH"), (35, "POSITION"), (87, "LENGTH"), (TOPIC_AT - 1, "LENGTH")],
    ids=["body", "magic", "total size", "position", "body length", "topic length"],
)
def test_damage_is_reported_and_all_other_messages_are_served(tmp_path: Path, at: int, reason: str) -> None:
    """Numbering holds, the damaged message is left out and named, and keys of the others are found."""
    placed = committed_store(tmp_path)
    damage(tmp_path, placed[BAD], at)
    build_committed(tmp_path)
    assert [(entry["physical_offset"], entry["size"], entry["reason"]) for entry in read_ledger(indexer(tmp_path))] == [
        (placed[BAD].physical_offset, len(placed[BAD].data), reason)
    ]
    with serve_query(tmp_path, index_slots=16, index_entries=64) as client:
        page = client.get("/v1/topics/orders/queues/0/messages?offset=0&body_encoding=utf8").json()
        assert {message["queue_offset"]: message["body"] for message in page["messages"]} == {
            i: f"body{i:04d}" for i in range(COUNT) if i != BAD
        }
        assert page["next_offset"] == COUNT
        corruptions = client.get("/v1/corruptions").json()
        assert [entry["physical_offset"] for entry in corruptions["corruptions"]] == [placed[BAD].physical_offset]
        found = client.get(f"/v1/topics/orders/messages?key=k{BAD + 1}").json()["messages"]
        assert [message["queue_offset"] for message in found] == [BAD + 1]


@pytest.mark.parametrize("from_end", [11, 23], ids=["a digit of the CRC", "a key"])
def test_a_damaged_property_is_reported_if_the_record_has_a_crc(tmp_path: Path, from_end: int) -> None:
    """As with a body, the unit stays; readers leave the message out and report the reason."""
    placed = committed_store(tmp_path, property_crc=True)
    damage(tmp_path, placed[BAD], len(placed[BAD].data) - from_end)
    build_committed(tmp_path)
    assert [(entry["physical_offset"], entry["reason"]) for entry in read_ledger(indexer(tmp_path))] == [
        (placed[BAD].physical_offset, "PROPERTY_CRC")
    ]
    with serve_query(tmp_path, index_slots=16, index_entries=64) as client:
        page = client.get("/v1/topics/orders/queues/0/messages?offset=0").json()
        assert [message["queue_offset"] for message in page["messages"]] == [i for i in range(COUNT) if i != BAD]
        assert [(skip["queue_offset"], skip["reason"]) for skip in page["skipped"]] == [(BAD, "PROPERTY_CRC")]
        assert client.get(f"/v1/messages/at/{placed[BAD].physical_offset}").status_code == 500


@pytest.mark.parametrize("shards", [1, 2, 3, 4])
def test_a_non_numeric_property_is_reported_by_the_owning_shard(tmp_path: Path, shards: int) -> None:
    """Only the owner reads properties, so the owner reports."""
    wrong = {"INNER_NUM": "x", "INNER_BASE": "1"}
    records = [{"topic": b"T"}, {"topic": b"T", "properties": properties(wrong)}, {"topic": b"U"}]
    placed = write_log(tmp_path / "commitlog", 8192, records)
    end = placed[-1].physical_offset + len(placed[-1].data)
    plan = make_plan(PipelineSettings(store_root=tmp_path, once=True, shards=shards, **SETTINGS), limit=end)
    build(plan)
    told = [(entry["physical_offset"], entry["reason"]) for entry in read_ledger(plan.paths.indexer)]
    assert told == [(placed[1].physical_offset, "NUMBER")]


def test_an_impossible_queue_offset_is_damage(tmp_path: Path) -> None:
    """Queue offsets have no checksum: a flipped high bit must not make a queue of 2^62 units."""
    placed = committed_store(tmp_path)
    damage(tmp_path, placed[BAD], 20, 0x40)
    build_committed(tmp_path)
    assert [(entry["physical_offset"], entry["reason"]) for entry in read_ledger(indexer(tmp_path))] == [
        (placed[BAD].physical_offset, "QUEUE_OFFSET")
    ]
    with serve_query(tmp_path, index_slots=16, index_entries=64) as client:
        page = client.get("/v1/topics/orders/queues/0/messages?offset=0").json()
        assert [message["queue_offset"] for message in page["messages"]] == [i for i in range(COUNT) if i != BAD]


def indexer(root: Path) -> Path:
    return root / "tidemark" / "indexer"
