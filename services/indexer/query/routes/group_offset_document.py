"""A group's offset in a queue, with the queue's bounds and the group's lag."""

from __future__ import annotations

from typing import Any

from tidemark.errors import QueueIllegalError, TopicNotFoundError
from tidemark.read.watermark import Watermark

from ..groups.consumer_offsets import ConsumerOffset
from ..state.service_state import ServiceState


def offset_json(state: ServiceState, watermark: Watermark, offset: ConsumerOffset) -> dict[str, Any]:
    """Return one offset with the bounds of its queue, as GroupOffsetAnswer describes it.

    If the group's offset is from a deleted topic of the same name, the result has the new topic's first offset.
    """
    position = max(offset.offset, state.store.first_offset(offset.topic, offset.queue_id))
    try:
        bounds = state.store.bounds(state.store.queue(offset.topic, offset.queue_id), watermark)
    except (TopicNotFoundError, QueueIllegalError, ValueError):
        bounds = None
    return {
        "topic": offset.topic,
        "queue_id": offset.queue_id,
        "offset": position,
        "min_offset": None if bounds is None else bounds.min_offset,
        "max_offset": None if bounds is None else bounds.max_offset,
        "below_min": None if bounds is None else max(0, bounds.min_offset - position),
        "lag": None if bounds is None else max(0, bounds.max_offset - max(position, bounds.min_offset)),
    }
