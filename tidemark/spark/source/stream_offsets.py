"""Conversion of a stream's offsets to the JSON that Spark stores, {"topic": {"0": 23}}, as in Kafka's source."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.client.received_message import TopicQueue

Json = dict[str, dict[str, int]]


def to_json(offsets: Mapping[TopicQueue, int]) -> Json:
    """Return *offsets* by topic and queue id, sorted."""
    written: Json = {}
    for queue in sorted(offsets):
        written.setdefault(queue.topic, {})[str(queue.queue_id)] = offsets[queue]
    return written


def from_json(written: Json) -> dict[TopicQueue, int]:
    """Parse the result of `to_json`."""
    return {
        TopicQueue(topic, int(queue_id)): offset
        for topic, queues in written.items()
        for queue_id, offset in queues.items()
    }
