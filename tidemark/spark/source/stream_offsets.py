"""Conversion of a stream's offsets to the JSON that Spark stores, {"topic": {"0": 23}}, as in Kafka's source.

With several stores, it is one such object for each: {"http://host1:8080": {"topic": {"0": 23}}}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidemark.client.received_message import StoreQueue, TopicQueue, queue_of_store

Json = dict[str, Any]


def to_json(offsets: Mapping[TopicQueue, int]) -> Json:
    """Return *offsets* by topic and queue id, sorted; of several stores, by store before."""
    written: Json = {}
    for queue in sorted(offsets, key=lambda queue: (_store_of(queue), *queue)):
        store = _store_of(queue)
        topics = written.setdefault(store, {}) if store else written
        topics.setdefault(queue.topic, {})[str(queue.queue_id)] = offsets[queue]
    return written


def _store_of(queue: TopicQueue) -> str:
    return queue.store if isinstance(queue, StoreQueue) else ""


def from_json(written: Json, stores: Sequence[str] = ()) -> dict[TopicQueue, int]:
    """Parse the result of `to_json`.

    stores  of the query, if there are several: offsets without a store are those of the first one, which was the only
            one when they were written
    """
    return {
        queue_of_store((topic, int(queue_id)), store): offset
        for store, topics in _by_store(written, stores[0] if stores else "")
        for topic, queues in topics.items()
        for queue_id, offset in queues.items()
    }


def _by_store(written: Json, only: str) -> Iterator[tuple[str, Json]]:
    for name, value in written.items():
        is_store = any(isinstance(one, dict) for one in value.values())
        yield (name, value) if is_store else (only, {name: value})
