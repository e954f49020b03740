"""Tidemark's Producer and Consumer, over remoting frames or gRPC."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.peers.python.load import CONSUME_TABLE, LATENCY, TOPIC, Load
from benchmarks.peers.python.protocol import RECEIVE_S, Addresses
from tidemark.client import Consumer, Producer, SendStatus
from tidemark.client.wire.wire import Wire

_QUEUES = 4
_FINISH_S = 120.0


class Remoting:
    """A producer, which accumulates where messages may share a batch, and a consumer of all queues."""

    wire: Wire = "remoting"

    def __init__(self, addresses: Addresses, load: Load) -> None:
        self._url = addresses["query"]
        self._is_table = load.workload == CONSUME_TABLE
        self._producer = Producer(addresses["writer"], wire=self.wire, accumulate=load.may_batch, timeout_s=_FINISH_S)
        self._producer.topics.create(TOPIC, queues=1 if load.workload == LATENCY else _QUEUES)
        self._consumer: Consumer | None = None

    def send(self, body: bytes) -> None:
        result = self._producer.send(TOPIC, body)
        if result.status is not SendStatus.PUT_OK:
            raise ValueError(f"the answer is {result.status.name}")

    def begin(self, body: bytes) -> None:
        self._producer.send_async(TOPIC, body)

    def push(self) -> None:
        pass

    def finish(self) -> None:
        if not self._producer.flush(_FINISH_S):
            raise ValueError("a message was not stored")

    def rewind(self) -> None:
        if self._consumer is None:
            self._consumer = Consumer(TOPIC, url=self._url, wire=self.wire)
        else:
            self._consumer.seek_all("earliest")

    def receive(self) -> Sequence[bytes]:
        assert self._consumer is not None
        if not self._is_table:
            return [message.body for message in self._consumer.poll(RECEIVE_S)]
        table = self._consumer.poll_table(RECEIVE_S)
        bodies: Sequence[bytes] = [] if table is None else table.column("body")
        return bodies

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._producer.close()


class Grpc(Remoting):
    """The same over gRPC, and HTTP for the consumer."""

    wire: Wire = "grpc"
