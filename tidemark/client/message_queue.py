"""MessageQueue: one queue of a topic on one writer."""

from __future__ import annotations

from typing import NamedTuple


class MessageQueue(NamedTuple):
    """A queue that accepts messages. writer: address of its writer."""

    topic: str
    writer: str
    queue_id: int
