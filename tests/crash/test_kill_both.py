"""Writer and pipeline killed under load, together and in turn: the answers that clients got must hold."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tidemark.client import Message, Producer
from tidemark.errors import StoreError
from tidemark.index.ledger import read_ledger
from tidemark.local.local_stack import PIPELINE, WRITER, LocalStack
from tidemark.store.paths import StorePaths

pytestmark = pytest.mark.spark
QUEUES, SENDERS = 4, 4


class Load:
    """Senders that append numbered batches of three to their own queues, and record sends and answers."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._stop = threading.Event()
        self.sent: list[list[str]] = [[] for _ in range(SENDERS)]
        self.acknowledged: list[dict[str, int]] = [{} for _ in range(SENDERS)]
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(SENDERS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        with Producer(self._address, timeout_s=20) as producer:
            batch = 0
            while not self._stop.is_set():
                bodies = [f"{number}-{batch}-{i}" for i in range(3)]
                self.sent[number] += bodies
                try:
                    result = producer.send_batch([Message("orders", body) for body in bodies], queue_id=number)
                    self.acknowledged[number].update({body: result.queue_offset + i for i, body in enumerate(bodies)})
                except StoreError:  # unknown outcome: it may be there or not
                    time.sleep(0.1)
                batch += 1


def pull_all(url: str, queue_id: int) -> list[str]:
    """Return every body of a queue; its offsets must be dense from 0."""
    bodies: list[str] = []
    while True:
        arguments: dict[str, str | int] = {"offset": len(bodies), "max_messages": 5000, "body_encoding": "utf8"}
        page = httpx.get(f"{url}/v1/topics/orders/queues/{queue_id}/messages", params=arguments, timeout=30).json()
        assert "messages" in page, page
        if not page["messages"]:
            assert page["next_offset"] == page["max_offset"] == len(bodies)
            return bodies
        offsets = [message["queue_offset"] for message in page["messages"]]
        assert offsets == list(range(len(bodies), len(bodies) + len(offsets)))
        bodies += [message["body"] for message in page["messages"]]


def wait_until_caught_up(url: str) -> None:
    deadline = time.monotonic() + 90
    while True:
        status = httpx.get(f"{url}/v1/watermark", timeout=30).json()
        if status["watermark"]["physical_offset"] == status["committed_offset"]:
            return
        assert time.monotonic() < deadline, status
        time.sleep(0.1)


def test_acknowledged_messages_are_stored_once_in_order_after_kills(tmp_path: Path) -> None:
    """The writer, the pipeline, and both are killed with SIGKILL while four clients append."""
    environment = {"TIDEMARK_EPOCH_MS": "1000", "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(1 << 20)}
    stack = LocalStack(tmp_path / "store", environment=environment)
    with stack:
        load = Load(stack.writer_address)
        load.start()
        try:
            for victims in ((WRITER,), (PIPELINE,), (WRITER, PIPELINE)):
                time.sleep(2)
                for name in victims:
                    stack.services.pop(name).kill()
                for name in victims:
                    stack.start_service(name)
            time.sleep(3)
        finally:
            load.stop()
        wait_until_caught_up(stack.query_url)
        for number in range(SENDERS):
            stored = pull_all(stack.query_url, number)
            places = {body: offset for offset, body in enumerate(stored)}
            assert max(Counter(stored).values()) == 1
            assert load.acknowledged[number].items() <= places.items()
            assert places.keys() <= set(load.sent[number])
            order = {body: i for i, body in enumerate(load.sent[number])}
            assert [order[body] for body in stored] == sorted(order[body] for body in stored)
            assert len(load.acknowledged[number]) > 100
    assert read_ledger(StorePaths(stack.data).indexer) == []
