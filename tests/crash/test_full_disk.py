"""A full disk under all three services: refusals are reported, nothing is lost, and all continue when there is room."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.crash.small_disk import fill, small_disk
from tests.integration.pipeline.test_pipeline_process import rebuilt
from tests.pipeline_runs import queue_files
from tests.query_server import serve_query
from tidemark.client import Message, Producer
from tidemark.errors import DiskFullError
from tidemark.local.local_stack import PIPELINE, LocalStack

pytestmark = pytest.mark.crash

SIZES = {"INDEX_SLOTS": "500", "INDEX_ENTRIES": "2000", "CONSUME_QUEUE_FILE_SIZE_BYTES": "4000"}
SETTINGS = {
    **{f"TIDEMARK_{name}": value for name, value in SIZES.items()},
    "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(1 << 20),
    "TIDEMARK_EPOCH_MS": "1000",
    "TIDEMARK_MIN_FREE_DISK_BYTES": "0",
}


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[LocalStack]:
    """Run all services on a disk of 24 MiB, with their logs elsewhere."""
    with small_disk(tmp_path / "disk", "24m") as disk:
        (disk / "store").mkdir()
        (tmp_path / "logs").mkdir()
        (disk / "store" / "logs").symlink_to(tmp_path / "logs")
        stack = LocalStack(disk / "store", environment=SETTINGS)
        stack.start()
        try:
            yield stack
        finally:
            stack.stop()


def wait_until(holds: Callable[[], bool], stack: LocalStack) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        stack.check()
        assert time.monotonic() < deadline, stack.services[PIPELINE].last_lines()
        time.sleep(0.1)


def is_caught_up(stack: LocalStack) -> bool:
    answer = httpx.get(f"{stack.query_url}/v1/watermark", timeout=30).json()
    return bool(answer["watermark"]["physical_offset"] == answer["committed_offset"])


def is_healthy(stack: LocalStack) -> bool:
    environment = {**os.environ, **SETTINGS, "TIDEMARK_STORE_ROOT": str(stack.data)}
    command = [sys.executable, "-m", "services.indexer.healthcheck"]
    return subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False).returncode == 0


def said(stack: LocalStack, event: str) -> bool:
    return event in (stack.logs / f"{PIPELINE}.log").read_text()


def allocate_log(root: Path) -> None:
    """Allocate the log's files, so that appends succeed when nothing else can be written."""
    for path in (root / "commitlog").iterdir():
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


@pytest.mark.spark
@pytest.mark.exhaustive
def test_all_services_survive_a_full_disk(stack: LocalStack, tmp_path: Path) -> None:
    """The pipeline waits, unhealthy; a group's offset stays; appended messages are visible once there is room."""
    offset = f"{stack.query_url}/v1/groups/billing/topics/orders/queues/0/offset"
    with Producer(stack.writer_address) as producer:
        producer.send("orders", b"first", queue_id=0)
        wait_until(lambda: is_caught_up(stack), stack)
        assert httpx.put(offset, json={"offset": 1}, timeout=30).status_code == 200
        allocate_log(stack.data)
        fill(tmp_path / "disk" / "rest")
        sent = 1
        for _ in range(20):  # more units than the allocated pages of the queue's file hold
            producer.send_batch([Message("orders", b"m%d" % i) for i in range(100)], queue_id=0)
            sent += 100
        wait_until(lambda: said(stack, "pipeline_waits_for_room"), stack)
        assert not is_healthy(stack)
        refused = httpx.put(offset, json={"offset": 7}, timeout=30)
        assert (refused.status_code, refused.json()["reason"]) == (507, "DISK_FULL")
        assert httpx.get(offset, timeout=30).json()["offset"] == 1
        try:
            for _ in range(100):  # until the next file of the log is needed
                producer.send_batch([Message("orders", bytes(200_000))], queue_id=0)
                sent += 1
            raise AssertionError("the disk is not full")
        except DiskFullError:
            pass
        pid = stack.services[PIPELINE].pid
        (tmp_path / "disk" / "rest").unlink()
        wait_until(lambda: is_caught_up(stack), stack)
        wait_until(lambda: is_healthy(stack), stack)
        assert stack.services[PIPELINE].pid == pid
        assert said(stack, "pipeline_goes_on")
        assert httpx.put(offset, json={"offset": 7}, timeout=30).status_code == 200
        assert producer.send("orders", b"last", queue_id=0).queue_offset == sent
    wait_until(lambda: is_caught_up(stack), stack)
    assert stack.services[PIPELINE].stop(60) == 0
    built = rebuilt(stack.data, tmp_path / "rebuilt")
    assert queue_files(stack.data) == queue_files(built)


def test_a_query_service_starts_on_a_full_disk(tmp_path: Path) -> None:
    """Reads work; a PUT is refused with the reason, and accepted when there is room."""
    with small_disk(tmp_path / "disk", "2m") as disk:
        store = BuiltStore(disk / "store")
        store.topic("orders")
        store.append("orders", b"m0")
        store.publish()
        fill(disk / "rest")
        with serve_query(store.root) as client:
            assert len(client.get("/v1/topics/orders/queues/0/messages").json()["messages"]) == 1
            path = "/v1/groups/g/topics/orders/queues/0/offset"
            refused = client.put(path, json={"offset": 1})
            assert (refused.status_code, refused.json()["reason"]) == (507, "DISK_FULL")
            assert client.get(path).status_code == 404
            (disk / "rest").unlink()
            assert client.put(path, json={"offset": 1}).status_code == 200
        store.marks.close()
