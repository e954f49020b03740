"""Programs that send one message after the other and wait for each answer, with a Producer as anybody makes it."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from tidemark.client import Producer

TOPIC = "orders"
_SENDERS = 3
_PAUSE_S = 0.005


class Senders:
    """They send from `with` on until `stop`. A body is `<sender>/<number>/<when>`: seconds of the monotonic clock.

    acknowledged  bodies by sender, in the order they were sent
    errors        what reached a program, whatever it was; it ends there
    longest_s     the longest that a send took
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._ending = threading.Event()
        self.acknowledged: list[list[str]] = [[] for _ in range(_SENDERS)]
        self.errors: list[BaseException] = []
        self.longest_s = 0.0
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(_SENDERS)]

    @property
    def sent(self) -> list[str]:
        """All bodies that were acknowledged so far."""
        return [body for bodies in self.acknowledged for body in list(bodies)]

    def _run(self, sender: int) -> None:
        acknowledged = self.acknowledged[sender]
        try:
            with Producer(self._address) as producer:
                while not self._ending.wait(_PAUSE_S):
                    began = time.monotonic()
                    body = f"{sender}/{len(acknowledged)}/{began}"
                    producer.send(TOPIC, body, key=f"sender-{sender}")
                    acknowledged.append(body)
                    self.longest_s = max(self.longest_s, time.monotonic() - began)
        except BaseException as error:
            self.errors.append(error)

    def stop(self) -> None:
        """What is being sent is answered when this returns."""
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
