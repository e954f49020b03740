"""RocketmqClients: a producer and a consumer of RocketMQ's Java client in a soak, on a topic of their own.

They are the programs of tests/clients. A send whose outcome is unknown is not repeated by the program, so its message
may be stored or not; RocketMQ's client itself repeats a send up to two times.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.clients.live import Live
from tests.clients.programs import USUAL, JavaProgram
from tests.soak.facts import Violation
from tests.soak.stack import Stack
from tidemark.client import Consumer, Topics

TOPIC, GROUP = "java", "soak-java"
_QUEUES = 4
_WITHOUT_PROGRESS_S = 60.0  # longer than the consumer's pauses after an error
_PAUSE_S = 0.2


class RocketmqClients:
    """The two programs. Raises ToolchainMissingError where the Java client cannot be got."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self._program = JavaProgram()
        self._stack = stack
        self._folder = folder
        self._running = ExitStack()

    def start(self) -> None:
        """Create the topic, and start the programs."""
        with Topics(self._stack.writer_address, timeout_s=60) as topics:
            topics.create(TOPIC, queues=_QUEUES)
        self._consumer, self._sender = self._start("live_receive"), self._start("live_send")

    def _start(self, scenario: str) -> Live:
        folder, address = self._folder / scenario, self._stack.remoting_address
        live = Live(self._program, scenario, address, topic=TOPIC, group=GROUP, folder=folder, way=USUAL)
        return self._running.enter_context(live)

    def finish(self) -> list[Violation]:
        """Stop the sends, wait until everything is received, and judge. Everything stored must be visible."""
        self._sender.end()
        stored = self._read()
        count, since = len(self._consumer.received), time.monotonic()
        while not set(stored) <= set(self._consumer.bodies) and time.monotonic() - since < _WITHOUT_PROGRESS_S:
            if len(self._consumer.received) > count:
                count, since = len(self._consumer.received), time.monotonic()
            time.sleep(_PAUSE_S)
        return [Violation(*one) for one in judge(self._sender.acknowledged, stored, self._consumer.bodies)]

    def _read(self) -> list[str]:
        stored: list[str] = []
        with Consumer(TOPIC, url=self._stack.query_url) as consumer:
            while messages := consumer.poll(2):
                stored += [message.body.decode() for message in messages]
        return stored

    def report(self) -> str:
        """Return a line with counts."""
        received = self._consumer.bodies
        return (
            f"Java client      {len(self._sender.acknowledged)} messages acknowledged; {len(received)} received, "
            f"{len(received) - len(set(received))} of them again"
        )

    def close(self) -> None:
        """End the programs."""
        self._running.close()


def judge(acknowledged: Sequence[str], stored: Sequence[str], received: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield rule and text of each broken promise. The arguments are bodies; a program sends each body once."""
    counts = Counter(stored)
    for body in acknowledged:
        if body not in counts:
            yield "lost", f"{body} of the Java client was acknowledged and is not stored"
    for body, count in counts.items():
        if count > 1:
            yield "doubled", f"{body} of the Java client is stored {count} times"
    for body in counts.keys() - set(received):
        yield "never handed out", f"{body} is stored, and the Java client has not received it"
    for body in set(received) - counts.keys():
        yield "invented", f"the Java client has received {body}, which is not stored"
