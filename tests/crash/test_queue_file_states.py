"""Every state in which a crash, a full disk or an operator may leave a queue's files: every service still starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.writer.config import WriterSettings
from services.writer.log.open_store import open_store, release_store
from tests.pipeline_runs import build, plan_of, queue_files
from tests.query_server import serve_query
from tests.unit.pipeline.shards.test_expiry import LOG_FILE, expire_log, make_store
from tidemark.store.mapped_file_queue import file_name
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.crash

SETTINGS: dict[str, Any] = {
    "consume_queue_file_size_bytes": 200,
    "batch_consume_queue_file_size_bytes": 460,
    "index_slots": 16,
    "index_entries": 64,
    "shards": 1,
}
QUEUES = {"consumequeue/orders/0": 200, "batchconsumequeue/batches/0": 460}


def add_last(size: int) -> Callable[[Path, int], None]:
    """Return a function that adds a new last file of *size* zero bytes."""

    def damage(folder: Path, file_size: int) -> None:
        last = max(int(path.name) for path in folder.iterdir())
        (folder / file_name(last + file_size)).write_bytes(bytes(size if size >= 0 else file_size))

    return damage


def no_files(folder: Path, file_size: int) -> None:
    """Leave only the folder."""
    for path in folder.iterdir():
        path.unlink()


def next_offsets(root: Path) -> dict[tuple[str, int], int]:
    """Return the next offsets of a writer without a snapshot, which reads log and queue files."""
    store = open_store(WriterSettings(store_root=root, commit_log_segment_size_bytes=LOG_FILE), DiskStorage())
    try:
        return {(key.topic, key.queue_id): offset for key, offset in store.recovered.offsets}
    finally:
        release_store(store)


def len_of(topic: str) -> int:
    """Return the number of messages that `make_store` puts into queue 0 of a topic."""
    numbers = range(400)
    if topic == "batches":
        return 3 * sum(number % 4 == 3 for number in numbers)
    return sum(number % 4 in (0, 2) and not (number < 12 and number % 4 == 2) for number in numbers)


def require_all_served(root: Path) -> None:
    """Assert that readers get every message of queue 0 of both topics, to its last one."""
    with serve_query(root, index_slots=16, index_entries=64) as client:
        for topic in ("orders", "batches"):
            queue = client.get(f"/v1/topics/{topic}/queues/0").json()
            assert queue["max_offset"] == len_of(topic)
            page = client.get(f"/v1/topics/{topic}/queues/0/messages", params={"max_messages": 1000}).json()
            offsets = [message["queue_offset"] for message in page["messages"]]
            assert offsets == list(range(queue["min_offset"], queue["max_offset"]))


@pytest.mark.parametrize("expired", [0, 9], ids=["whole", "expired"])
@pytest.mark.parametrize("damage", [add_last(-1), add_last(0)], ids=["empty last file", "last file of no length"])
def test_an_empty_last_queue_file_hides_no_queue_offset(
    tmp_path: Path, damage: Callable[[Path, int], None], expired: int
) -> None:
    """All units before it may point at deleted records: pipeline, readers and writer work at each start."""
    make_store(tmp_path)
    build(plan_of(tmp_path, **SETTINGS))
    before = queue_files(tmp_path)
    for folder, file_size in QUEUES.items():
        damage(tmp_path / folder, file_size)
    expire_log(tmp_path, expired)
    for _ in range(2):
        build(plan_of(tmp_path, **SETTINGS))
    kept = queue_files(tmp_path)
    if not expired:  # the units of deleted records are not built again
        assert all(kept[path] == before[path] for path in kept.keys() & before.keys())
    require_all_served(tmp_path)
    numbers = next_offsets(tmp_path)
    assert (numbers["orders", 0], numbers["batches", 0]) == (len_of("orders"), len_of("batches"))


@pytest.mark.parametrize("size", [1, 190])
def test_a_queue_with_a_last_file_of_another_size_is_rebuilt(tmp_path: Path, size: int) -> None:
    """The pipeline sets the queue's files aside (a broker does not start), and readers get every message."""
    make_store(tmp_path)
    build(plan_of(tmp_path, **SETTINGS))
    for folder, file_size in QUEUES.items():
        add_last(size)(tmp_path / folder, file_size)
    expire_log(tmp_path, 1)
    build(plan_of(tmp_path, **SETTINGS))
    require_all_served(tmp_path)


def test_a_queue_folder_without_files_is_an_empty_queue(tmp_path: Path) -> None:
    """The pipeline starts it again at its next unit; the writer counts from the log."""
    make_store(tmp_path)
    build(plan_of(tmp_path, **SETTINGS))
    for folder, file_size in QUEUES.items():
        no_files(tmp_path / folder, file_size)
    expire_log(tmp_path, 1)
    build(plan_of(tmp_path, **SETTINGS))
    with serve_query(tmp_path, index_slots=16, index_entries=64) as client:
        for topic in ("orders", "batches"):
            queue = client.get(f"/v1/topics/{topic}/queues/0").json()
            assert (queue["min_offset"], queue["max_offset"]) == (0, 0)
    numbers = next_offsets(tmp_path)
    assert (numbers["orders", 0], numbers["batches", 0]) == (len_of("orders"), len_of("batches"))
