"""Failures of trusted logs with times and offsets: each is one test, named by its number. See test_log.py."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.indexer.query.groups.consumer_offsets import ConsumerOffset, ConsumerOffsets
from tests.built_store import PRE_BLANK, BuiltStore
from tests.pipeline_runs import GOLDEN_SETTINGS, build, plan_of
from tests.query_server import serve_query
from tests.unit.store.recording_storage import KilledHere, RecordingStorage
from tidemark.read.lookup.offset_by_time import Boundary, TimeAnswer, offset_by_time
from tidemark.read.store_reader import StoreReader
from tidemark.store.originals.consumer_offsets import load_consumer_offsets
from tidemark.store.originals.topics import save_config
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.crash


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    """Return an empty store with a simple topic `orders` and a batch topic `batches`."""
    store = BuiltStore(tmp_path / "store", units_a_file=3)
    store.topic("orders")
    store.topic("batches", batch=True)
    return store


def ask(built: BuiltStore, topic: str, time_ms: int, boundary: Boundary = Boundary.LOWER) -> TimeAnswer:
    reader = StoreReader(built.root)
    queue = reader.queue(topic, 0)
    return offset_by_time(queue, reader.log, reader.bounds(queue, reader.watermark()), time_ms, boundary)


def test_kf15_a_time_after_all_batches_gives_the_end(built: BuiltStore) -> None:
    """For a time above the last one, a batch queue answered its minimum (rocketmq#4071); here it is the first message
    at or after the time, otherwise the end.
    """
    times = [100, 110, 110, 110, 120, 130, 130]
    for time_ms in times:
        built.append_batch("batches", [(b"x", {}, 0)] * 4, at_ms=time_ms)
    built.publish()
    for asked in (0, 99, 100, 105, 110, 115, 120, 125, 130, 131, 10_000):
        index = next((i for i, time_ms in enumerate(times) if time_ms >= asked), None)
        expected = TimeAnswer(28, None) if index is None else TimeAnswer(4 * index, times[index])
        assert ask(built, "batches", asked) == expected


@pytest.mark.parametrize("topic", ["orders", "batches"])
def test_kf16_equal_times_give_the_first_or_the_last_as_requested(built: BuiltStore, topic: str) -> None:
    """A reset to the time that a batch's messages share landed in their middle (rocketmq#5445); here lower is the first
    of equals, upper the last.
    """
    for at_ms in (100, 200, 300):
        for _ in range(1 if topic == "batches" else 5):
            if topic == "batches":
                built.append_batch(topic, [(b"x", {}, 0)] * 5, at_ms=at_ms)
            else:
                built.append(topic, at_ms=at_ms)
    built.publish()
    assert ask(built, topic, 200, Boundary.LOWER) == TimeAnswer(5, 200)
    assert ask(built, topic, 200, Boundary.UPPER) == TimeAnswer(9, 200)


def offsets_file(offset: int) -> dict[str, Any]:
    """Return the content of consumerOffset.json with this offset of one group."""
    return {"dataVersion": {"counter": offset}, "offsetTable": {"t@g": {"0": offset}}}


def test_kf19_consumer_offsets_survive_a_crash_at_any_step_and_a_torn_file(tmp_path: Path) -> None:
    """A power cut tore consumerOffset.json (rocketmq#3401, rocketmq#10518); here after any step the old or the new one
    is there, with a checked copy.
    """
    path = StorePaths(tmp_path).consumer_offsets
    path.parent.mkdir()
    died = 0
    for step in range(100):
        path.write_text(json.dumps(offsets_file(1)))
        path.with_name(path.name + ".bak").unlink(missing_ok=True)
        try:
            save_config(path, offsets_file(2), RecordingStorage(die_before=step))
            break
        except KilledHere:
            died += 1
        assert load_consumer_offsets(path)["t@g"][0] in (1, 2)
    assert died >= 4
    assert load_consumer_offsets(path) == {"t@g": {0: 2}}
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        offsets = ConsumerOffsets(StorePaths(tmp_path), DiskStorage())
        assert list(offsets.all()) == [ConsumerOffset("g", "t", 0, 2)]
        offsets.close()


def follow(client: httpx.Client, topic: str, queue_id: int, offset: int) -> list[int]:
    """Return the offsets of all messages from *offset* on; each answer must move the cursor or be the end."""
    found: list[int] = []
    while True:
        page = client.get(f"/v1/topics/{topic}/queues/{queue_id}/messages", params={"offset": offset}).json()
        found += [message["queue_offset"] for message in page["messages"]]
        if page["status"] in ("OFFSET_OVERFLOW_ONE", "NO_MESSAGE_IN_QUEUE"):
            return found
        assert page["next_offset"] > offset
        offset = page["next_offset"]


def test_kf21_reads_below_the_minimum_and_in_a_gap_terminate(
    golden_store: Callable[[str], Path], tmp_path: Path
) -> None:
    """Reading below the minimum or in a deleted range raised, or never ended (rocketmq#10959, rocketmq#10732); here
    such a read is 410 with the next offset, and holes are stepped over.
    """
    root = Path(shutil.copytree(golden_store("expired/store"), tmp_path / "store"))
    build(plan_of(root, **GOLDEN_SETTINGS["expired/store"]))
    expired = 0
    with serve_query(root) as client:
        names = {
            path.parent.name for folder in ("consumequeue", "batchconsumequeue") for path in (root / folder).glob("*/*")
        }
        for topic in sorted(names):
            for bounds in client.get(f"/v1/topics/{topic}").json()["queues"]:
                least, queue_id = bounds["min_offset"], bounds["queue_id"]
                path = f"/v1/topics/{topic}/queues/{queue_id}/messages"
                for offset in {0, least // 2, max(0, least - 1)} - {least}:
                    answer = client.get(path, params={"offset": offset})
                    assert (answer.status_code, answer.json()["next_offset"]) == (410, least)
                    expired += 1
                if bounds["max_offset"]:
                    assert follow(client, topic, queue_id, least) == list(range(least, bounds["max_offset"]))
    assert expired > 5


def test_kf21_a_hole_in_a_queue_is_skipped(built: BuiltStore) -> None:
    """As above; here the cursor passes pre-blank units, wherever a read begins."""
    built.append("orders", b"m0")
    for number in range(1, 8):
        built.write_units("orders", 0, number, PRE_BLANK)
    built.next["orders", 0] = 8
    built.append("orders", b"m8")
    built.publish()
    with serve_query(built.root) as client:
        for offset in range(9):
            assert follow(client, "orders", 0, offset) == ([0, 8] if offset == 0 else [8])
