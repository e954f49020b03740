"""confluent-kafka: librdkafka's producer and consumer."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from benchmarks.peers.python.load import LATENCY, TOPIC, Load
from benchmarks.peers.python.protocol import RECEIVE_S, Addresses

_FINISH_S = 120.0
_MOST = 1000


class ConfluentKafka:
    """A producer, which lingers only where messages may share a batch, and a consumer of all partitions.

    fetch.wait.max.ms is low, so that a fetch at the end of the topic does not delay the next pass.
    """

    def __init__(self, addresses: Addresses, load: Load) -> None:
        server = {"bootstrap.servers": addresses["kafka"]}
        self._producer = Producer({**server, **_lingering(load)})
        self._consumer = Consumer({**server, "group.id": "bench", "enable.auto.commit": False, "fetch.wait.max.ms": 10})
        self._reads_single = load.workload == LATENCY
        self._left, self._per_pass = 0, load.messages
        self._acknowledged = 0
        self._failures: list[KafkaError] = []

    def send(self, body: bytes) -> None:
        before = self._acknowledged
        self._producer.produce(TOPIC, body, on_delivery=self._note)
        while self._acknowledged == before:
            self._producer.poll(RECEIVE_S)
        self._require()

    def begin(self, body: bytes) -> None:
        while True:
            try:
                self._producer.produce(TOPIC, body, on_delivery=self._note)
                break
            except BufferError:  # the queue is full
                self._producer.poll(RECEIVE_S)
        self._producer.poll(0)

    def _note(self, error: KafkaError | None, _: object) -> None:
        self._acknowledged += 1
        if error is not None:
            self._failures.append(error)

    def _require(self) -> None:
        if self._failures:
            raise ValueError(str(self._failures[0]))

    def push(self) -> None:
        pass

    def finish(self) -> None:
        if self._producer.flush(_FINISH_S):
            raise ValueError("a message has no answer")
        self._require()

    def rewind(self) -> None:
        partitions = self._consumer.list_topics(TOPIC).topics[TOPIC].partitions
        self._consumer.assign([TopicPartition(TOPIC, partition, OFFSET_BEGINNING) for partition in partitions])
        self._left = self._per_pass

    def receive(self) -> Sequence[bytes]:
        if self._reads_single:
            messages = [message for message in [self._consumer.poll(RECEIVE_S)] if message is not None]
        else:  # `consume` waits for the whole number
            messages = self._consumer.consume(min(_MOST, self._left), RECEIVE_S)
            self._left -= len(messages)
        for message in messages:
            if message.error() is not None:
                raise ValueError(str(message.error()))
        return [message.value() for message in messages]

    def close(self) -> None:
        self._consumer.close()


def _lingering(load: Load) -> dict[str, int]:
    """Return linger.ms; its default is 5 ms."""
    if not load.may_batch:
        return {"linger.ms": 0}
    return {"linger.ms": 1} if load.workload == LATENCY else {}
