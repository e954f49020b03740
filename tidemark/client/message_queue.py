"""MessageQueue: one queue of a topic on one writer."""

from __future__ import annotations

from typing import NamedTuple


class MessageQueue(NamedTuple):
    """A queue that takes messages. writer: the address its writer is dialled at."""

    topic: str
    writer: str
    queue_id: int
