"""Programs that poll, with a Consumer as anybody makes it: alone, or several of a group."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Self

from tests.rolling.senders import TOPIC
from tidemark.client import Consumer

_POLL_S = 0.5


class Readers:
    """*count* of them poll from `with` on until its end.

    commit  whether each commits after each poll, as who wants nothing twice does
    read    bodies in the order they came, of each reader
    errors  what reached a program, whatever it was; it ends there
    longest_s  the longest from a send's begin until a reader had the message
    """

    def __init__(self, url: str, count: int = 1, *, commit: bool = False, **options: Any) -> None:
        self._url = url
        self._commit = commit
        self._options = options
        self._ending = threading.Event()
        self.read: list[list[str]] = [[] for _ in range(count)]
        self.errors: list[BaseException] = []
        self.longest_s = 0.0
        self._threads = [threading.Thread(target=self._run, args=(read,)) for read in self.read]

    @property
    def bodies(self) -> list[str]:
        """Of all readers together."""
        return [body for read in self.read for body in list(read)]

    def _run(self, read: list[str]) -> None:
        try:
            with Consumer(TOPIC, url=self._url, **self._options) as consumer:
                while not self._ending.is_set():
                    messages = consumer.poll(_POLL_S)
                    now = time.monotonic()
                    for message in messages:
                        body = message.text()
                        read.append(body)
                        self.longest_s = max(self.longest_s, now - float(body.rpartition("/")[2]))
                    if messages and self._commit:
                        consumer.commit()
        except BaseException as error:
            self.errors.append(error)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()
