"""Load: senders that append numbered batches to their own queues, and record the answers."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from tidemark.client import Message, Producer
from tidemark.errors import StoreError

TOPIC = "orders"
SENDERS = 3
_BATCH = 10
_PAUSE_S = 0.01


class Acknowledged(NamedTuple):
    """One acknowledged batch. Offsets: of its first message; the exclusive end of its records."""

    queue_id: int
    queue_offset: int
    end_physical_offset: int
    bodies: list[str]


class Load:
    """Sends until `stop`. sent: bodies by queue; failures: errors of sends."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._ending = threading.Event()
        self.sent: list[list[str]] = [[] for _ in range(SENDERS)]
        self.acknowledged: list[Acknowledged] = []
        self.failures: list[StoreError] = []
        self._threads = [threading.Thread(target=self._run, args=(queue_id,)) for queue_id in range(SENDERS)]

    def start(self) -> None:
        """Start the senders."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the senders; every send is answered when this returns."""
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _run(self, queue_id: int) -> None:
        with Producer(self._address, timeout_s=30) as producer:
            while not self._ending.wait(_PAUSE_S):
                number = len(self.sent[queue_id])
                bodies = [f"{queue_id}-{number + i}" for i in range(_BATCH)]
                batch = [Message(TOPIC, body, keys=(f"key-{body}",), tag="A") for body in bodies]
                self.sent[queue_id] += bodies
                try:
                    result = producer.send_batch(batch, queue_id=queue_id)
                except StoreError as failure:
                    self.failures.append(failure)
                    time.sleep(0.1)
                    continue
                self.acknowledged.append(
                    Acknowledged(queue_id, result.queue_offset, result.end_physical_offset, bodies)
                )
