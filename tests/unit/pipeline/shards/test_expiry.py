"""Queue and index files expire with the log's; afterwards answers equal those of a rebuild from the remaining log."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.indexer.pipeline.epoch import run_epoch
from tests.builders import Placed, properties, wire_batch, write_log
from tests.pipeline_runs import build, index_contents, plan_of, queue_files, without_derived
from tidemark.errors import StoreError
from tidemark.read.lookup.index_reader import IndexReader
from tidemark.read.lookup.key_lookup import KeyQuery, find_by_key
from tidemark.read.lookup.offset_by_time import offset_by_time
from tidemark.read.pull import PullRequest, pull
from tidemark.read.store_reader import StoreReader
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage

LOG_FILE = 8192
SETTINGS: dict[str, Any] = {
    "consume_queue_file_size_bytes": 200,
    "batch_consume_queue_file_size_bytes": 460,
    "index_slots": 16,
    "index_entries": 64,
}


def records(count: int) -> Iterator[dict[str, Any]]:
    """Yield records of three simple queues, one of them only in the first files, and of a batch queue."""
    next_offsets = [0, 0, 0]
    for number in range(count):
        yield record(number, next_offsets)


def record(number: int, next_offsets: list[int]) -> dict[str, Any]:
    entries = {"UNIQ_KEY": f"u{number}", "KEYS": f"k{number % 7}"}
    common = {"store_timestamp": 1_700_000_000_000 + 1000 * number}
    if number % 4 == 3:
        entries |= {"INNER_NUM": "3", "INNER_BASE": str(number // 4 * 3)}
        body = wire_batch(*((b"%d.%d" % (number, i), b"", 0) for i in range(3)))
        batch = {"topic": b"batches", "body": body, "sys_flag": 0xC0, "queue_offset": number // 4 * 3}
        return {**common, **batch, "properties": properties(entries)}
    queue_id = 2 if number < 12 and number % 4 == 2 else number % 4 % 2
    queue_offset, next_offsets[queue_id] = next_offsets[queue_id], next_offsets[queue_id] + 1
    fields = {"topic": b"orders", "body": b"x" * (60 + number % 9), "queue_id": queue_id, "queue_offset": queue_offset}
    return {**common, **fields, "properties": properties(entries)}


def make_store(root: Path, count: int = 400) -> list[Placed]:
    """Make about ten log files, 15 queue files of a queue, and several index files."""
    topics = {
        "orders": {"topicName": "orders", "readQueueNums": 3, "writeQueueNums": 3, "perm": 6},
        "batches": {"topicName": "batches", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6,
                    "attributes": {"queue.type": "BatchCQ"}},
    }  # fmt: skip
    (root / "config").mkdir(parents=True)
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": topics}))
    return write_log(root / "commitlog", LOG_FILE, records(count))


def expire_log(root: Path, files: int) -> int:
    """Remove the first *files* as retention does, and return the log's minimum."""
    for path in sorted((root / "commitlog").iterdir())[:files]:
        path.unlink()
    return files * LOG_FILE


def answers(root: Path) -> dict[str, Any]:
    """Return a reader's view of a store: bounds, every message, offsets by time, keys."""
    store = StoreReader(root)
    index = IndexReader(store.paths.index, slots=SETTINGS["index_slots"], entries=SETTINGS["index_entries"])
    watermark = store.watermark()
    told: dict[str, Any] = {"watermark": watermark.physical_offset}
    for topic, queue_id in (("orders", 0), ("orders", 1), ("batches", 0)):
        queue = store.queue(topic, queue_id)
        bounds = store.bounds(queue, watermark)
        result = pull(queue, store.log, bounds, PullRequest(bounds.min_offset, 10_000, 1 << 30))
        rows = [row for part in result.parts for row in part.messages]
        told[f"{topic}/{queue_id}"] = (
            bounds.min_offset,
            bounds.max_offset,
            [(int(row["queue_offset"]), int(row["physical_offset"])) for row in rows],
            [offset_by_time(queue, store.log, bounds, 1_700_000_000_000 + at) for at in range(0, 420_000, 7_000)],
        )
    for key in range(7):
        found = find_by_key(store, index, watermark, KeyQuery("orders", f"k{key}", limit=1000))
        told[f"k{key}"] = [int(row["physical_offset"]) for part in found.parts for row in part.messages]
    return told


@pytest.mark.parametrize("expired", [1, 4, 8])
@pytest.mark.parametrize("shards", [1, 2])
def test_queue_files_of_deleted_records_are_deleted_and_match_a_rebuild(
    tmp_path: Path, expired: int, shards: int
) -> None:
    """At most one file of each queue points only at deleted records; live units of a rebuild have the same bytes."""
    root = tmp_path / "store"
    make_store(root)
    build(plan_of(root, shards=shards, **SETTINGS))
    before = queue_files(root)
    index_before = index_contents(root)
    log_min = expire_log(root, expired)
    progress = build(plan_of(root, shards=shards, **SETTINGS))
    kept = queue_files(root)
    gone = before.keys() - kept.keys()
    assert kept == {path: before[path] for path in kept}
    assert sum(row.expired_files for row in progress) == len(gone) + len(index_before) - len(index_contents(root))
    if expired > 1:
        assert len(gone) > 3
        assert len(index_contents(root)) < len(index_before)
    for path in gone:
        assert greatest(before[path], batch=path.startswith("batch")) < log_min
    for folder in {path.rpartition("/")[0] for path in kept}:
        files = sorted(path for path in kept if path.startswith(f"{folder}/"))
        for path in files[:-1]:
            assert greatest(kept[path], batch=path.startswith("batch")) >= log_min

    rebuilt = without_derived(root, tmp_path / "rebuilt")
    build(plan_of(rebuilt, shards=shards, **SETTINGS))
    assert answers(rebuilt) == answers(root)
    again = queue_files(rebuilt)
    for path, content in again.items():
        if not path.startswith("batch"):
            for at in range(0, len(content), 20):
                if int.from_bytes(content[at : at + 8], "big") >= log_min:
                    assert kept[path][at : at + 20] == content[at : at + 20]


def greatest(content: bytes, *, batch: bool) -> int:
    """Return the greatest physical offset of a file's units."""
    size = 46 if batch else 20
    units = [content[at : at + size] for at in range(0, len(content) - size + 1, size)]
    return max(int.from_bytes(unit[:8], "big") for unit in units if int.from_bytes(unit[8:12], "big"))


def test_a_queue_without_a_live_record_keeps_its_last_file(tmp_path: Path) -> None:
    """Its minimum equals its maximum, and its next number is known."""
    make_store(tmp_path)
    build(plan_of(tmp_path, **SETTINGS))
    expire_log(tmp_path, 4)
    build(plan_of(tmp_path, **SETTINGS))
    store = StoreReader(tmp_path)
    bounds = store.bounds(store.queue("orders", 2), store.watermark())
    assert (bounds.min_offset, bounds.max_offset) == (3, 3)


def test_an_epoch_scans_queues_for_expiry_only_when_the_minimum_has_moved(tmp_path: Path) -> None:
    """A store has many thousand queues, and an epoch is short."""
    make_store(tmp_path)
    build(plan_of(tmp_path, shards=1, **SETTINGS))
    log_min = expire_log(tmp_path, 3)
    plan = plan_of(tmp_path, shards=1, **SETTINGS)
    assert run_epoch(plan, shard=0, follower=0).expired_files > 0
    assert (plan.paths.indexer / "expired-0").read_text() == f"{log_min}\n"
    stray = tmp_path / "consumequeue" / "orders" / "0"
    first = min(stray.iterdir())
    (stray / f"{int(first.name) - 200:020d}").write_bytes(first.read_bytes())
    assert run_epoch(plan, shard=0, follower=0).expired_files == 0


class KilledAtUnlink(DiskStorage):
    """Dies at the *lives*-th deletion."""

    def __init__(self, lives: int) -> None:
        self.lives = lives

    def unlink(self, path: Path) -> None:
        if self.lives == 0 and path.name.isdigit():
            raise _Killed
        self.lives -= path.name.isdigit()
        super().unlink(path)


class _Killed(BaseException):
    pass


def test_a_kill_between_any_two_deletions_is_completed_by_the_next_epoch(tmp_path: Path) -> None:
    """The next epoch deletes the rest; readers get the same answers meanwhile."""
    before, clean = tmp_path / "before", tmp_path / "clean"
    make_store(before)
    build(plan_of(before, **SETTINGS))
    expire_log(before, 6)
    shutil.copytree(before, clean)
    build(plan_of(clean, **SETTINGS))
    for lives in range(1000):
        root = Path(shutil.copytree(before, tmp_path / f"{lives}"))
        try:
            build(plan_of(root, **SETTINGS), KilledAtUnlink(lives))
            break
        except _Killed:
            assert answers(root) == answers(clean)
        build(plan_of(root, **SETTINGS))
        assert queue_files(root) == queue_files(clean)
        assert index_contents(root) == index_contents(clean)
    assert lives > 20


def test_a_rebuild_while_log_files_expire_reports_no_damage(tmp_path: Path) -> None:
    """The walk is set back to 0 and continues at the log's new beginning."""
    root = tmp_path / "store"
    make_store(root)
    plan = plan_of(root, chunk_size_bytes=4096, **SETTINGS)
    build(plan)
    fresh = without_derived(root, tmp_path / "fresh")
    marks = Marks.open_to_write(plan_of(fresh).paths.marks, DiskStorage(), shards=plan.all_shards, term=0)
    for shard in range(plan.all_shards):
        marks.set_back(shard, 0)
    marks.close()

    class ExpiringStorage(DiskStorage):
        """Removes the log's first files while the first units are written."""

        def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
            super().pwrite(descriptor, data, at)
            if len(list((fresh / "commitlog").iterdir())) > 6:
                for path in sorted((fresh / "commitlog").iterdir())[:3]:
                    path.unlink()

    try:
        progress = build(plan_of(fresh, chunk_size_bytes=4096, **SETTINGS), ExpiringStorage())
    except StoreError as error:
        raise AssertionError(f"told {error}") from error
    assert sum(row.damages for row in progress) == 0
    assert Marks.open_read_only(plan_of(fresh).paths.marks).watermark() == plan.limit
