"""Positions of a follower as text: `orders:0:17`, or several of these separated by commas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pydantic import TypeAdapter

from ..schema.query_arguments import PullOffset, QueueId, TopicName

_TOPIC = TypeAdapter[str](TopicName)
_QUEUE_ID = TypeAdapter[int](QueueId)
_OFFSET = TypeAdapter[str](PullOffset)


class Position(NamedTuple):
    """A queue, and the queue offset to read from: a number, earliest or latest."""

    topic: str
    queue_id: int
    offset: str

    def __str__(self) -> str:
        return f"{self.topic}:{self.queue_id}:{self.offset}"


def parse_position(text: str, *, default_offset: str | None = None) -> Position:
    """Return the position in *text*, `topic:queue:offset`; with a default, the offset may be missing.

    Raises:
        ValueError: *text* has another form, or one of its parts is illegal.
    """
    parts = text.split(":")
    if default_offset is not None and len(parts) == 2:
        parts.append(default_offset)
    if len(parts) != 3:
        raise ValueError(f"{text!r}: expected topic:queue:offset, such as orders:0:17")
    topic, queue_id, offset = parts
    return Position(_TOPIC.validate_python(topic), _QUEUE_ID.validate_python(queue_id), _OFFSET.validate_python(offset))


def parse_positions(text: str) -> list[Position]:
    """Return the positions in *text*. Raises as `parse_position`."""
    return [parse_position(one) for one in text.split(",")]


def positions_text(positions: Iterable[Position]) -> str:
    """Return *positions* as text, which `parse_positions` reads."""
    return ",".join(map(str, positions))
