"""A group's offset in a queue, with the queue's bounds and its lag."""

from __future__ import annotations

from typing import Any

from tidemark.errors import QueueIllegalError, TopicNotFoundError
from tidemark.read.watermark import Watermark

from .facade import Facade
from .groups import ConsumerOffset


def offset_json(facade: Facade, watermark: Watermark, offset: ConsumerOffset) -> dict[str, Any]:
    """One offset with the bounds of its queue, as GroupOffsetAnswer describes it."""
    try:
        bounds = facade.store.bounds(facade.store.queue(offset.topic, offset.queue_id), watermark)
    except (TopicNotFoundError, QueueIllegalError, ValueError):
        bounds = None
    return {
        "topic": offset.topic,
        "queue_id": offset.queue_id,
        "offset": offset.offset,
        "min_offset": None if bounds is None else bounds.min_offset,
        "max_offset": None if bounds is None else bounds.max_offset,
        "below_min": None if bounds is None else max(0, bounds.min_offset - offset.offset),
        "lag": None if bounds is None else max(0, bounds.max_offset - max(offset.offset, bounds.min_offset)),
    }
