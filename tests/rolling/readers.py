"""Programs that poll with an ordinary Consumer: alone, or several of a group."""

from __future__ import annotations

import itertools
import threading
import time
from functools import partial
from typing import Any

from tests.rolling.programs import Programs
from tests.rolling.senders import TOPIC, WIRES
from tidemark.client import Consumer
from tidemark.client.wire.wire import Wire

_POLL_S = 0.5


class Readers(Programs):
    """*count* readers, which use both wires in turn.

    longest_s: from the start of a send until a reader had the message.

    commit  whether each commits after each poll, so that it reads nothing twice
    read    bodies in the order of arrival, of each reader
    """

    def __init__(self, url: str, count: int = 1, *, commit: bool = False, **options: Any) -> None:
        self._url = url
        self._commit = commit
        self._options = options
        self.read: list[list[str]] = [[] for _ in range(count)]
        super().__init__([partial(self._poll, *one) for one in zip(itertools.cycle(WIRES), self.read, strict=False)])

    @property
    def bodies(self) -> list[str]:
        """Return the bodies of all readers."""
        return [body for read in self.read for body in list(read)]

    def _poll(self, wire: Wire, read: list[str], ending: threading.Event) -> None:
        with Consumer(TOPIC, url=self._url, **{"wire": wire, **self._options}) as consumer:
            while not ending.is_set():
                messages = consumer.poll(_POLL_S)
                now = time.monotonic()
                for message in messages:
                    body = message.text()
                    read.append(body)
                    self.longest_s = max(self.longest_s, now - float(body.rpartition("/")[2]))
                if messages and self._commit:
                    consumer.commit()
