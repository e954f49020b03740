"""A seeded sender of all kinds of messages, through the broker's own client."""

from __future__ import annotations

import random

from .rocket_client import Answer, RocketClient, ToSend

QUEUES = {"orders": 3, "packed": 2, "payments": 2}  # by topic; `packed` has BatchConsumeQueues


class Sender:
    """Sends seeded messages of all kinds with the broker's client; sent: acknowledged (queue offset, body) by queue."""

    def __init__(self, client: RocketClient, seed: int) -> None:
        self._client = client
        self._random = random.Random(seed)
        self._number = 0
        self.sent: dict[tuple[str, int], list[tuple[int, bytes]]] = {}
        self.keys: list[tuple[str, str]] = []

    def message(self, topic: str) -> ToSend:
        size = self._random.choice([10, 100, 1_000, 3_000, 20_000])
        self._number += 1
        key = f"k{self._number}"
        self.keys.append((topic, key))
        body = f"{topic} {self._number} ".encode() + self._random.randbytes(size)
        return ToSend(body, tag=self._random.choice("AB"), keys=(key, f"shared{self._number % 7}"))

    def send_some(self, count: int) -> None:
        for _ in range(count):
            kind = self._random.choice(["single", "single", "batch", "inner", "transaction", "delay"])
            topic = {"inner": "packed", "transaction": "payments"}.get(kind, "orders")
            queue_id = self._random.randrange(QUEUES[topic])
            if kind in ("batch", "inner"):
                messages = [self.message(topic) for _ in range(self._random.randrange(2, 6))]
                self._note(topic, self._client.send_batch(topic, queue_id, messages), messages, kind)
            elif kind == "transaction":
                message = self.message(topic)
                self._client.send_in_transaction(topic, message, commit=self._random.random() < 0.7)
            elif kind == "delay":
                message = self.message(topic)
                self._client.send(topic, queue_id, ToSend(message.body, keys=message.keys, delay_level=1))
            else:
                message = self.message(topic)
                self._note(topic, self._client.send(topic, queue_id, message), [message], kind)

    def _note(self, topic: str, told: Answer, messages: list[ToSend], kind: str) -> None:
        if told["status"] != "SEND_OK":
            return
        first = int(str(told["queue_offset"]))
        at = self.sent.setdefault((topic, int(told["queue_id"])), [])
        at += [(first + i, message.body) for i, message in enumerate(messages)]
