"""Topics, and seeded messages for them, each with a unique body."""

from __future__ import annotations

import random
from typing import NamedTuple

from .rocket_client import ToSend


class TopicShape(NamedTuple):
    """A topic before it is created."""

    name: str
    queues: int
    batch: bool = False


TOPICS = {
    shape.name: shape
    for shape in (
        TopicShape("singles", 3),
        TopicShape("batches", 2),
        TopicShape("packed", 2, batch=True),
        TopicShape("big", 1),
        TopicShape("delayed", 2),
        TopicShape("transactions", 2),
        TopicShape("oneway", 1),
    )
}
UNSETTLED = ("delayed", "oneway")  # a broker may deliver more of these at any time
TAGS = ("TagA", "TagB", "TagC", "")
BIG = (20_000, 100_000, 380_000)
SHARED_KEYS = 97


class Messages:
    """A generator of messages."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._number = 0

    def make(self, most: int, *, delay_level: int = 0) -> ToSend:
        """Return a message with a body of at most about *most* bytes."""
        draw, self._number = self.random, self._number + 1
        size = draw.randrange(1, most)
        text = f"订单 order {draw.randrange(1000)} ".encode()
        filling = (text * (size // len(text) + 1))[:size] if draw.random() < 0.5 else draw.randbytes(size)
        keys = (f"k{self._number}", f"order-{self._number % SHARED_KEYS}")
        properties = {"区域": f"华东-{draw.randrange(5)}", "trace": f"t-{draw.random()}"}
        return ToSend(
            b"%d:%b" % (self._number, filling),
            tag=draw.choice(TAGS),
            keys=keys[: draw.randrange(3)],
            properties={name: value for name, value in properties.items() if draw.random() < 0.3},
            flag=draw.randrange(-(1 << 31), 1 << 31) if draw.random() < 0.25 else 0,
            delay_level=delay_level,
        )

    def make_batch(self) -> list[ToSend]:
        """Return up to forty small ones."""
        return [self.make(1500) for _ in range(self.random.randrange(1, 40))]

    def make_big(self) -> ToSend:
        """Return one that fills a good part of a file."""
        return self.make(self.random.choice(BIG))

    def queue_of(self, topic: str) -> int:
        """Return any of its queues."""
        return self.random.randrange(TOPICS[topic].queues)
