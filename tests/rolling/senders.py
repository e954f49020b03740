"""Programs that send one message after the other, and wait for each answer, with an ordinary Producer."""

from __future__ import annotations

import threading
import time
from functools import partial

from tests.rolling.programs import Programs
from tidemark.client import Producer
from tidemark.client.wire.wire import Wire

TOPIC = "orders"
WIRES: tuple[Wire, Wire] = ("remoting", "grpc")
_SENDERS = 3
_PAUSE_S = 0.005


class Senders(Programs):
    """The senders use both wires in turn.

    A body is `<sender>/<number>/<when>`: seconds of the monotonic clock. longest_s: of one send.

    acknowledged  bodies by sender, in the order of sends
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self.acknowledged: list[list[str]] = [[] for _ in range(_SENDERS)]
        super().__init__([partial(self._send, sender) for sender in range(_SENDERS)])

    @property
    def sent(self) -> list[str]:
        """Return all acknowledged bodies so far."""
        return [body for bodies in self.acknowledged for body in list(bodies)]

    def _send(self, sender: int, ending: threading.Event) -> None:
        acknowledged = self.acknowledged[sender]
        with Producer(self._address, wire=WIRES[sender % 2]) as producer:
            while not ending.wait(_PAUSE_S):
                began = time.monotonic()
                body = f"{sender}/{len(acknowledged)}/{began}"
                producer.send(TOPIC, body, key=f"sender-{sender}")
                acknowledged.append(body)
                self.longest_s = max(self.longest_s, time.monotonic() - began)
