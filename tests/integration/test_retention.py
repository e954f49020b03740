"""Retention through all services: the writer deletes, the pipeline expires, readers and writers continue."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import httpx
import pytest

from tidemark.client import Producer
from tidemark.errors import StoreError
from tidemark.index.ledger import read_ledger
from tidemark.local.local_stack import PIPELINE, WRITER, LocalStack
from tidemark.store.paths import StorePaths

pytestmark = pytest.mark.spark

QUEUES = 2
SETTINGS = {
    "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(1 << 16),
    "TIDEMARK_CONSUME_QUEUE_FILE_SIZE_BYTES": "2000",
    "TIDEMARK_INDEX_SLOTS": "100",
    "TIDEMARK_INDEX_ENTRIES": "400",
    "TIDEMARK_EPOCH_MS": "1000",
    "TIDEMARK_DURABLE_INTERVAL_MS": "50",
    "TIDEMARK_RETENTION_HOURS": "0.0003",  # a second
    "TIDEMARK_RETENTION_INTERVAL_MS": "100",
}


class Sender(threading.Thread):
    """Sends numbered messages to one queue; records the sent ones, and the acknowledged queue offset of each."""

    def __init__(self, address: str, queue_id: int, stop: threading.Event) -> None:
        super().__init__()
        self._address = address
        self._queue_id = queue_id
        self._stop_event = stop
        self.sent = 0
        self.told: dict[int, str] = {}

    def run(self) -> None:
        with Producer(self._address, timeout_s=20) as producer:
            while not self._stop_event.is_set():
                body = f"{self._queue_id}-{self.sent}"
                self.sent += 1
                try:
                    result = producer.send("orders", body + "." * 1000, key=body, queue_id=self._queue_id)
                    assert result.queue_offset not in self.told
                    self.told[result.queue_offset] = body
                except StoreError:  # outcome unknown
                    time.sleep(0.05)
                time.sleep(0.002)


class Reader(threading.Thread):
    """Follows one queue, sometimes from an old offset; continues where a 410 directs it.

    Any other error fails the test.
    """

    def __init__(self, url: str, queue_id: int, stop: threading.Event) -> None:
        super().__init__()
        self.url = f"{url}/v1/topics/orders/queues/{queue_id}/messages"
        self._stop_event = stop
        self.seen: dict[int, str] = {}
        self.wrong: list[str] = []

    def run(self) -> None:
        cursor, rounds = 0, 0
        with httpx.Client(timeout=60) as client:
            while not self._stop_event.is_set():
                arguments: dict[str, str | int] = {"offset": cursor, "max_messages": 50, "body_encoding": "utf8"}
                answer = client.get(self.url, params={**arguments, "wait_ms": 100})
                content = answer.json()
                if answer.status_code == 410:
                    if not cursor < content["next_offset"] == content["min_offset"] <= content["max_offset"]:
                        self.wrong.append(answer.text)
                    cursor = content["next_offset"]
                elif answer.status_code == 200:
                    self._take(content, cursor)
                    cursor = content["next_offset"]
                elif content["reason"] != "TOPIC_NOT_FOUND":
                    self.wrong.append(answer.text)
                rounds += 1
                if rounds % 40 == 0:
                    cursor //= 2

    def _take(self, content: dict[str, object], cursor: int) -> None:
        messages = content["messages"]
        assert isinstance(messages, list)
        offsets = [message["queue_offset"] for message in messages]
        if offsets != list(range(cursor, cursor + len(offsets))):
            self.wrong.append(f"from {cursor}: {offsets}")
        for message in messages:
            body = message["body"].rstrip(".")
            if self.seen.setdefault(message["queue_offset"], body) != body:
                self.wrong.append(f"{message['queue_offset']} was {self.seen[message['queue_offset']]}, is {body}")


def watermark(url: str) -> tuple[int, int]:
    answer = httpx.get(f"{url}/v1/watermark", timeout=30).json()
    return answer["watermark"]["physical_offset"], answer["committed_offset"]


@pytest.mark.parametrize("kill", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_readers_and_writers_continue_while_the_log_expires(tmp_path: Path, kill: bool) -> None:
    """Under load there are fast, slow and expired readers, and SIGKILLs of writer and pipeline."""
    stop = threading.Event()
    with LocalStack(tmp_path / "store", environment=SETTINGS) as stack:
        with Producer(stack.writer_address) as producer:
            idle = [producer.send("idle", b"early", queue_id=0).queue_offset for _ in range(5)]
        offset_url = f"{stack.query_url}/v1/groups/late/topics/orders/queues/0/offset"
        senders = [Sender(stack.writer_address, queue_id, stop) for queue_id in range(QUEUES)]
        readers = [Reader(stack.query_url, queue_id, stop) for queue_id in range(QUEUES)]
        for thread in (*senders, *readers):
            thread.start()
        try:
            for name in (WRITER, PIPELINE, WRITER, PIPELINE) if kill else ():
                time.sleep(3)
                stack.services.pop(name).kill()
                stack.start_service(name)
            _wait_for_expiry(stack, senders)
        finally:
            stop.set()
            for thread in (*senders, *readers):
                thread.join()
        _wait_until_caught_up(stack)
        for queue_id, (sender, reader) in enumerate(zip(senders, readers, strict=True)):
            assert reader.wrong == []
            # a quick reader may never have been below the minimum
            below = httpx.get(reader.url, params={"offset": 0}, timeout=30)
            assert (below.status_code, below.json()["min_offset"] > 0) == (410, True)
            assert len(reader.seen) > 20
            assert {offset: sender.told.get(offset, body) for offset, body in reader.seen.items()} == reader.seen
            _require_rest(stack, sender, queue_id)
        assert httpx.put(offset_url, json={"offset": 1}, timeout=30).json()["below_min"] > 0
        with Producer(stack.writer_address) as producer:
            assert producer.send("idle", b"late", queue_id=0).queue_offset == len(idle)
        assert httpx.get(f"{stack.query_url}/v1/corruptions", timeout=30).json()["total"] == 0
    assert read_ledger(StorePaths(stack.data).indexer) == []


def _wait_for_expiry(stack: LocalStack, senders: list[Sender]) -> None:
    """Wait until log, queue and index files have expired, and every sender has sent many messages."""
    root = stack.data
    deadline = time.monotonic() + 300
    while True:
        stack.check()
        queue = sorted(path.name for path in (root / "consumequeue" / "orders" / "0").glob("*"))
        log = sorted(path.name for path in (root / "commitlog").iterdir())
        if queue and int(queue[0]) > 0 and int(log[0]) >= 4 << 16 and all(len(sender.told) > 300 for sender in senders):
            return
        assert time.monotonic() < deadline, (queue, log, [len(sender.told) for sender in senders])
        time.sleep(0.1)


def _wait_until_caught_up(stack: LocalStack) -> None:
    deadline = time.monotonic() + 180
    while True:
        visible, committed = watermark(stack.query_url)
        if visible == committed:
            return
        assert time.monotonic() < deadline, (visible, committed)
        time.sleep(0.1)


def _require_rest(stack: LocalStack, sender: Sender, queue_id: int) -> None:
    """Require every acknowledged message from the minimum on, at its acknowledged offset."""
    url = f"{stack.query_url}/v1/topics/orders/queues/{queue_id}"
    arguments: dict[str, str | int] = {"offset": "earliest", "max_messages": 5000, "max_bytes": 64 << 20}
    page = httpx.get(f"{url}/messages", params={**arguments, "body_encoding": "utf8"}, timeout=30).json()
    stored = {message["queue_offset"]: message["body"].rstrip(".") for message in page["messages"]}
    least = page["min_offset"]
    told = {offset: body for offset, body in sender.told.items() if offset >= least}
    assert told.items() <= stored.items()
    assert page["max_offset"] > max(sender.told)
    times = httpx.get(f"{url}/offset", params={"time": 0}, timeout=30).json()
    assert times["offset"] >= least
