"""Load: all producers and consumers of a soak, from the first message to the last."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from tests.soak.churn import Churn, create
from tests.soak.consumers import Asker, Follower, Rest
from tests.soak.group_watchers import Glancer, OffsetWatcher
from tests.soak.history import HistoryFile
from tests.soak.messages import BATCH_TOPICS, BUNDLES, CHURNED, LEDGER, ORDERS, QUEUES
from tests.soak.producers import OneByOne, Pace, Streaming
from tests.soak.stack import Stack
from tests.soak.ways import OverGrpc, OverHttp
from tidemark.client import Producer
from tidemark.client.wire.topic_admin import BATCH_QUEUE

PRODUCERS, MESSAGES_A_BATCH = 8, 4
MOST_MESSAGES = 200_000  # of a whole run, because the judge keeps them in memory
FULL_SPEED_S = 600.0  # in longer runs consumers send fewer requests, for the same reason
MOST_PER_S = 12.0  # batches of one producer
_JOIN_S = 660.0


class Client(Protocol):
    """The work of a thread."""

    name: str

    def run(self) -> None:
        """Run until it is stopped."""


def create_topics(address: str) -> None:
    """Create the topics of a soak before faults begin, with queues of both types."""
    with Producer(address, timeout_s=60) as producer:
        for topic, queues in QUEUES.items():
            producer.topics.create(topic, queues=queues, attributes=BATCH_QUEUE if topic in BATCH_TOPICS else {})
        for topic in CHURNED:
            create(producer.topics, topic)


class Load:
    """Clients in threads."""

    def __init__(self, stack: Stack, history: HistoryFile, seconds: float, seed: str) -> None:
        self._pace = Pace(min(MOST_PER_S, MOST_MESSAGES / seconds / PRODUCERS / MESSAGES_A_BATCH))
        self._consumers_stop = threading.Event()
        rest = Rest(self._consumers_stop, max(1.0, seconds / FULL_SPEED_S))
        address, url, pace = stack.writer_address, stack.query_url, self._pace
        producers: list[Client] = [
            Streaming("stream-1", address, "remoting", pace, history, seed),
            Streaming("stream-2", address, "grpc", pace, history, seed),
            OneByOne("packed", OverGrpc(address, packed=True), [ORDERS], pace, history, seed),
            OneByOne("mixed", OverGrpc(address, packed=False), [ORDERS, BUNDLES], pace, history, seed),
            OneByOne("bundler", OverGrpc(address, packed=True), [BUNDLES], pace, history, seed),
            OneByOne("ledger-1", OverGrpc(address, packed=False), [LEDGER], pace, history, seed),
            OneByOne("ledger-2", OverGrpc(address, packed=True), [LEDGER], pace, history, seed),
            OneByOne("poster", OverHttp(url), [ORDERS, BUNDLES], pace, history, seed),
        ]
        assert len(producers) == PRODUCERS
        producers += [Churn(topic, address, pace, history, seed) for topic in CHURNED]
        consumers: list[Client] = [
            *(Follower(f"follower-{i}", url, history, rest, seed) for i in (1, 2)),
            *(Asker(f"asker-{i}", url, address, history, rest, seed) for i in (1, 2, 3)),
            Glancer("glancer", url, history, rest, seed),
            OffsetWatcher("offset-watcher", url, history, rest),
        ]
        self.failures: list[tuple[str, BaseException]] = []
        self._producers = [self._thread(client) for client in producers]
        self._consumers = [self._thread(client) for client in consumers]

    def _thread(self, client: Client) -> threading.Thread:
        return threading.Thread(target=self._run, args=(client.name, client.run), name=client.name, daemon=True)

    def _run(self, name: str, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:  # a client that fails is a finding, which the end of the run reports
            self.failures.append((name, error))

    def start(self) -> None:
        """Start the clients."""
        for thread in (*self._producers, *self._consumers):
            thread.start()

    def stop_producers(self, give_up_s: float) -> None:
        """Stop sending, and wait until each append's outcome is known, at most *give_up_s*."""
        self._pace.give_up = time.monotonic() + give_up_s
        self._pace.stopping.set()
        self._join(self._producers)

    def stop_consumers(self) -> None:
        """Stop the consumers."""
        self._consumers_stop.set()
        self._join(self._consumers)

    def _join(self, threads: Sequence[threading.Thread]) -> None:
        deadline = time.monotonic() + _JOIN_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                self.failures.append((thread.name, TimeoutError("it does not end")))
