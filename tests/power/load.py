"""Load of a power test: producers and readers that record the messages they know to be stored, and since when."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import grpc
import httpx

from tests.power.judge import Knowledge, Known, Place
from tests.soak.messages import named
from tests.soak.ways import Batch, OverGrpc, Way
from tidemark.client import Producer
from tidemark.client.wire.topic_admin import BATCH_QUEUE
from tidemark.errors import StoreError

SIMPLE, BATCHES = "simple", "batches"
QUEUES = 2
_TOPICS = {SIMPLE: {}, BATCHES: BATCH_QUEUE}
_PRODUCERS = ((SIMPLE, True), (SIMPLE, False), (BATCHES, True), (SIMPLE, True))  # topic, packed
_LONGEST_PAUSE_S = 0.01
_TIMEOUT_S = 5.0
_PAGE = 1000


def create_topics(address: str) -> None:
    """Create the topics, or find them after a cut."""
    with Producer(address, timeout_s=60) as producer:
        for topic, attributes in _TOPICS.items():
            producer.topics.create(topic, queues=QUEUES, attributes=attributes)


class Load:
    """Producers and readers in threads, from `start` to `stop`. prefix: of the names of this cycle's messages."""

    def __init__(self, address: str, url: str, knowledge: Knowledge, prefix: str, seed: str) -> None:
        self._address = address
        self._url = url
        self._knowledge = knowledge
        self._lock = threading.Lock()  # around the knowledge: all threads write to it
        self._stopping = threading.Event()
        calls: list[Callable[[], None]] = [
            *(partial(self._produce, f"{prefix}.{i}", *way, seed) for i, way in enumerate(_PRODUCERS)),
            *(partial(self._read, topic, queue_id) for topic in _TOPICS for queue_id in range(QUEUES)),
        ]
        self._threads = [threading.Thread(target=call, daemon=True) for call in calls]

    def start(self) -> None:
        """Start all threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop all threads. Calls that wait for a service end with it."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)

    def _produce(self, name: str, topic: str, packed: bool, seed: str) -> None:
        choice = random.Random(f"{seed}-{name}")
        way: Way = OverGrpc(self._address, packed=packed)
        for number in itertools.count():
            if self._stopping.wait(choice.uniform(0, _LONGEST_PAUSE_S)):
                break
            messages = [named(f"{name}.{number}.{i}") for i in range(choice.choice((1, 2, 8)))]
            batch = Batch(topic, choice.randrange(QUEUES), messages, f"request-{messages[0].name}")
            with self._lock:
                self._knowledge.sent.update(message.name for message in messages)
            try:
                place = way.append(batch, _TIMEOUT_S)
            except (StoreError, grpc.RpcError):
                continue
            now = time.monotonic()
            if place is not None:
                with self._lock:
                    for i, message in enumerate(messages):
                        at = Place(topic, batch.queue_id, place.queue_offset + i)
                        self._knowledge.acknowledged[at] = Known(message.name, now)
        way.close()

    def _read(self, topic: str, queue_id: int) -> None:
        with httpx.Client(base_url=self._url, timeout=_TIMEOUT_S) as http:
            offset = 0
            while not self._stopping.is_set():
                try:
                    rows, offset = _pull(http, topic, queue_id, offset, wait_ms=300)
                except (httpx.HTTPError, ValueError):
                    self._stopping.wait(0.1)
                    continue
                now = time.monotonic()
                with self._lock:
                    self._knowledge.read.update({place: Known(name, now) for place, name in rows})


def read_all(url: str) -> dict[Place, str]:
    """Return every message of both topics by its place."""
    with httpx.Client(base_url=url, timeout=60) as http:
        return dict(row for topic in _TOPICS for queue_id in range(QUEUES) for row in _queue(http, topic, queue_id))


def _queue(http: httpx.Client, topic: str, queue_id: int) -> Iterator[tuple[Place, str]]:
    offset = 0
    while True:
        rows, following = _pull(http, topic, queue_id, offset)
        yield from rows
        if following == offset:
            return
        offset = following


def _pull(
    http: httpx.Client, topic: str, queue_id: int, offset: int, *, wait_ms: int = 0
) -> tuple[list[tuple[Place, str]], int]:
    """Return one page, and the offset after it. Raises ValueError if a record was left out as damaged."""
    arguments: dict[str, int | str] = {
        "offset": offset,
        "max_messages": _PAGE,
        "wait_ms": wait_ms,
        "body_encoding": "base64",
    }
    response = http.get(f"/v1/topics/{topic}/queues/{queue_id}/messages", params=arguments)
    response.raise_for_status()
    answer = response.json()
    if answer["skipped"]:
        raise ValueError(f"{topic}/{queue_id} has damaged records: {answer['skipped']}")
    rows = [(Place(topic, queue_id, row["queue_offset"]), _name_of(row["keys"])) for row in answer["messages"]]
    return rows, int(answer["next_offset"])


def _name_of(keys: list[str]) -> str:
    return keys[0]
