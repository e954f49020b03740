"""Appends through RocketMQ's client to a broker, and through Tidemark's to a writer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from tidemark.client import Message, Producer, SendResult
from tidemark.client.wire.topic_admin import BATCH_QUEUE

from .history import History
from .messages import TOPICS, Messages
from .rocket_client import RocketClient, RocketError, ToSend

SEND_TIMEOUT_S = 120.0


class BrokerLoad:
    """Sends of every kind that a broker supports."""

    def __init__(self, history: History, messages: Messages, client: RocketClient) -> None:
        self._history = history
        self._messages = messages
        self._client = client
        self._kinds: tuple[tuple[Callable[[], None], int], ...] = (  # with the number of each
            (lambda: self._single("singles"), 6),
            (lambda: self._batch("batches"), 3),
            (lambda: self._batch("packed"), 4),
            (lambda: self._single("packed"), 2),
            (self._big, 1),
            (self._oneway, 2),
            (self._delay, 1),
            (self._transaction, 2),
        )

    def create_topics(self) -> None:
        """Create all topics in an empty directory."""
        for shape in TOPICS.values():
            self._client.create_topic(shape.name, queues=shape.queues, batch=shape.batch)

    def append(self, sends: int) -> None:
        """Append *sends* of all kinds in random order; fewer if the broker is killed meanwhile."""
        kinds, weights = zip(*self._kinds, strict=True)
        for kind in self._messages.random.choices(kinds, weights, k=sends):
            try:
                kind()
            except RocketError:
                return

    def _single(self, topic: str) -> None:
        self._send_single(topic, self._messages.make(3000))

    def _big(self) -> None:
        self._send_single("big", self._messages.make_big())

    def _send_single(self, topic: str, message: ToSend) -> None:
        queue_id = self._messages.queue_of(topic)
        self._history.expect([message])
        answer = self._client.send(topic, queue_id, message)
        if answer["status"] == "SEND_OK":
            self._history.acknowledge(topic, queue_id, answer["queue_offset"], [message])

    def _batch(self, topic: str) -> None:
        queue_id, messages = self._messages.queue_of(topic), self._messages.make_batch()
        self._history.expect(messages)
        answer = self._client.send_batch(topic, queue_id, messages)
        if answer["status"] == "SEND_OK":
            self._history.acknowledge(topic, queue_id, answer["queue_offset"], messages)

    def _oneway(self) -> None:
        message = self._messages.make(500)
        self._history.expect([message])
        self._client.send_oneway("oneway", self._messages.queue_of("oneway"), message)

    def _delay(self) -> None:
        message = self._messages.make(500, delay_level=self._messages.random.randrange(1, 4))
        self._history.expect([message])
        if self._client.send("delayed", self._messages.queue_of("delayed"), message)["status"] == "SEND_OK":
            self._history.delay(message)

    def _transaction(self) -> None:
        message, commit = self._messages.make(500), self._messages.random.random() < 0.6
        self._history.expect([message])
        answer = self._client.send_in_transaction("transactions", message, commit=commit)
        if answer["status"] != "SEND_OK":
            return
        if commit:
            self._history.commit(message)
        else:
            self._history.roll_back(message)


class TidemarkLoad:
    """Sends of every kind that the writer supports; several are in flight, and outlive a killed writer."""

    def __init__(
        self, history: History, messages: Messages, address: str, *, timeout_s: float = SEND_TIMEOUT_S
    ) -> None:
        self._history = history
        self._messages = messages
        self._producer = Producer(address, timeout_s=timeout_s)
        self._sent: list[tuple[Future[SendResult], list[ToSend]]] = []

    def create_topics(self) -> None:
        """Create all topics; existing ones stay."""
        for shape in TOPICS.values():
            attributes = BATCH_QUEUE if shape.batch else {}
            self._producer.topics.create(shape.name, queues=shape.queues, attributes=attributes)

    def append(self, sends: int) -> None:
        """Send *sends* batches of one or several messages, without waiting for their answers."""
        for _ in range(sends):
            topic = self._messages.random.choices(("singles", "batches", "packed", "big"), (5, 3, 4, 1))[0]
            several = topic in ("batches", "packed") and self._messages.random.random() < 0.8
            one = self._messages.make_big if topic == "big" else lambda: self._messages.make(3000)
            messages = self._messages.make_batch() if several else [one()]
            self._history.expect(messages)
            future = self._producer.send_batch_async(
                [
                    Message(
                        topic,
                        each.body,
                        tag=each.tag or None,
                        keys=each.keys,
                        properties=each.properties,
                        flag=each.flag,
                    )
                    for each in messages
                ],
                queue_id=self._messages.queue_of(topic),
            )
            self._sent.append((future, messages))

    def finish(self) -> None:
        """Wait for every answer: each send is acknowledged, however often the writer was killed."""
        for future, messages in self._sent:
            result = future.result(SEND_TIMEOUT_S)
            self._history.acknowledge(result.topic, result.queue_id, result.queue_offset, messages)
        self._sent.clear()

    def abandon(self) -> None:
        """Accept the answers that come within the timeout; the rest stays uncertain. Close the connection."""
        self._producer.close()
        for future, messages in self._sent:
            if future.done() and not future.exception():
                result = future.result()
                self._history.acknowledge(result.topic, result.queue_id, result.queue_offset, messages)
        self._sent.clear()

    def close(self) -> None:
        """Close the connection."""
        self._producer.close()
