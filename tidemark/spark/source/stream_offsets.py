"""Offsets of a stream as Spark writes them down: {"topic": {"0": 23}}, JSON as Kafka's source has it."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.client.received_message import TopicQueue

Json = dict[str, dict[str, int]]


def to_json(offsets: Mapping[TopicQueue, int]) -> Json:
    """By topic and queue id, in order."""
    written: Json = {}
    for queue in sorted(offsets):
        written.setdefault(queue.topic, {})[str(queue.queue_id)] = offsets[queue]
    return written


def from_json(written: Json) -> dict[TopicQueue, int]:
    """What `to_json` wrote."""
    return {
        TopicQueue(topic, int(queue_id)): offset
        for topic, queues in written.items()
        for queue_id, offset in queues.items()
    }
