"""Onlooker: reads over REST during failures, and checks the watermark's promise."""

from __future__ import annotations

import threading
import time
from typing import Any

import httpx

from tests.cluster.load import SENDERS, TOPIC, Acknowledged, Load

_PAUSE_S = 0.05
_PAGE = 2_000


class Onlooker:
    """A thread that reads repeatedly: acknowledged messages below the watermark can be read, at their positions.

    bodies   read so far, by queue: each page starts at the end of the previous one
    went_back  number of decreases of the watermark
    """

    def __init__(self, url: str, load: Load) -> None:
        self._http = httpx.Client(base_url=url, timeout=30)
        self._load = load
        self._ending = threading.Event()
        self._taken = 0  # of load.acknowledged
        self._unseen: list[Acknowledged] = []
        self._failure: BaseException | None = None
        self.bodies: list[list[str]] = [[] for _ in range(SENDERS)]
        self.watermark = 0
        self.went_back = 0
        self._thread = threading.Thread(target=self._run, name="onlooker")

    def start(self) -> None:
        """Start reading."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and raise the failure, if any."""
        self._ending.set()
        self._thread.join()
        self.raise_failure()

    def close(self) -> None:
        """Close its connection."""
        self._http.close()

    def raise_failure(self) -> None:
        """Raise the violation that the thread has seen, if any."""
        if self._failure is not None:
            raise self._failure

    def seconds_until_visible(self, timeout_s: float) -> float:
        """Return the seconds until everything that is committed by now may be read."""
        began = time.monotonic()
        target = int(self._get("/v1/watermark")["committed_offset"])
        while self.watermark < target:
            self.raise_failure()
            assert time.monotonic() - began < timeout_s, f"at {self.watermark} of {target} after {timeout_s} s"
            time.sleep(_PAUSE_S)
        return time.monotonic() - began

    def require_everything(self) -> None:
        """Require that every sent message is there once, in order.

        Call it without active senders, when all is visible.
        """
        self._look()
        assert not self._unseen
        assert self.bodies == self._load.sent

    def _run(self) -> None:
        try:
            while not self._ending.wait(_PAUSE_S):
                self._look()
        except BaseException as failure:
            self._failure = failure

    def _look(self) -> None:
        status = self._get("/v1/watermark")
        watermark, committed = int(status["watermark"]["physical_offset"]), int(status["committed_offset"])
        assert watermark <= committed, (watermark, committed)
        self.went_back += watermark < self.watermark
        new = self._load.acknowledged[self._taken :]
        self._taken += len(new)
        self._unseen += new
        for batch in [batch for batch in self._unseen if batch.end_physical_offset <= watermark]:
            end = batch.queue_offset + len(batch.bodies)
            self._read_to(batch.queue_id, end)
            assert self.bodies[batch.queue_id][batch.queue_offset : end] == batch.bodies
        self._unseen = [batch for batch in self._unseen if batch.end_physical_offset > watermark]
        self.watermark = watermark

    def _read_to(self, queue_id: int, end: int) -> None:
        bodies = self.bodies[queue_id]
        while len(bodies) < end:
            path = f"/v1/topics/{TOPIC}/queues/{queue_id}/messages"
            page = self._get(path, offset=len(bodies), max_messages=_PAGE, body_encoding="utf8")
            offsets = [message["queue_offset"] for message in page["messages"]]
            assert offsets, f"queue {queue_id} ends at {len(bodies)}, below the watermark: {page}"
            assert offsets == list(range(len(bodies), len(bodies) + len(offsets)))
            bodies += [message["body"] for message in page["messages"]]

    def _get(self, path: str, **arguments: str | int) -> dict[str, Any]:
        answer = self._http.get(path, params=arguments)
        assert answer.status_code == 200, (answer.status_code, answer.text)
        found: dict[str, Any] = answer.json()
        return found
