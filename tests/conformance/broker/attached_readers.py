"""Readers of an attached query service, on threads: one consumer per queue, and one that watches the watermark."""

from __future__ import annotations

import threading
from collections import Counter

import httpx

from .attached_sender import QUEUES
from .rocket_client import Answer

_PAUSE_S = 0.005


class Reader(threading.Thread):
    """Reads until it is stopped; *failure*: the error that ended it."""

    def __init__(self, name: str, stopping: threading.Event) -> None:
        super().__init__(name=name)
        self._stopping = stopping
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with httpx.Client(timeout=60) as client:
                while not self._stopping.wait(_PAUSE_S):
                    self.look(client)
        except BaseException as error:
            self.failure = error

    def look(self, client: httpx.Client) -> None:
        """Read once."""
        raise NotImplementedError


class Consumer(Reader):
    """Long-polls one queue of the query service from its beginning; seen: every message in the order of arrival."""

    def __init__(self, url: str, topic: str, queue_id: int, stopping: threading.Event) -> None:
        super().__init__(f"{topic}-{queue_id}", stopping)
        self._url = f"{url}/v1/topics/{topic}/queues/{queue_id}/messages"
        self.seen: list[Answer] = []
        self.next_offset = 0
        self.gone = 0  # messages that had expired before they were read

    def look(self, client: httpx.Client) -> None:
        """Pull once."""
        response = client.get(self._url, params={"offset": self.next_offset, "max_messages": 50, "wait_ms": 200})
        answer = response.json()
        if response.status_code == 410:
            assert answer["min_offset"] > self.next_offset
            self.gone += answer["min_offset"] - self.next_offset
            self.next_offset = answer["min_offset"]
            return
        assert response.status_code == 200, answer
        removed = [skipped for skipped in answer["skipped"] if skipped["reason"] == "REMOVED"]
        assert answer["skipped"] == removed
        self.gone += len(removed)
        for message in answer["messages"]:
            assert message["physical_offset"] < answer["watermark"]["physical_offset"]
        self.seen += answer["messages"]
        self.next_offset = answer["next_offset"]


class Watcher(Reader):
    """Reads the watermark continually: it never goes back within a term, nor above the committed offset."""

    def __init__(self, url: str, stopping: threading.Event) -> None:
        super().__init__("watcher", stopping)
        self._url = f"{url}/v1/watermark"
        self._last = (0, 0)
        self.looks: Counter[int] = Counter()  # by term

    def look(self, client: httpx.Client) -> None:
        """Read it once."""
        answer = client.get(self._url).json()
        now = (answer["watermark"]["term"], answer["watermark"]["physical_offset"])
        assert now >= self._last, f"the watermark went back from {self._last} to {now}"
        assert answer["committed_offset"] >= now[1]
        self.looks[now[0]] += 1
        self._last = now


class Readers:
    """Consumers of all queues and a watcher, until the block ends; raises the failure of one of them."""

    def __init__(self, url: str) -> None:
        self._stopping = threading.Event()
        self.watcher = Watcher(url, self._stopping)
        self.consumers = {
            (topic, queue_id): Consumer(url, topic, queue_id, self._stopping)
            for topic, count in QUEUES.items()
            for queue_id in range(count)
        }

    @property
    def _all(self) -> list[Reader]:
        return [self.watcher, *self.consumers.values()]

    def __enter__(self) -> Readers:
        for reader in self._all:
            reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for reader in self._all:
            reader.join()

    def require_no_failure(self) -> None:
        """Raise a failure, if there is one."""
        for reader in self._all:
            if reader.failure is not None:
                raise reader.failure
