"""Restriction of ranges to the places of a key, as far as the key index has them."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tidemark.client.received_message import TopicQueue
from tidemark.spark.source.log import Log
from tidemark.spark.source.ranges import QueueRange


def with_places(ranges: Iterable[QueueRange], log: Log, key: str, *, most: int) -> list[QueueRange]:
    """Return *ranges* with the places of messages that may have *key*; ranges without any are dropped.

    most  ranges of a topic with more places, or with places that the index does not have, stay unchanged
    """
    known: dict[str, Mapping[TopicQueue, list[int]] | None] = {}
    narrowed = []
    for one in ranges:
        if one.topic not in known:
            known[one.topic] = _by_queue(log, one.topic, key, most)
        places = known[one.topic]
        narrowed.append(one if places is None else _at_places(one, places.get(one.queue, [])))
    return [one for one in narrowed if one.places is None or one.places]


def _by_queue(log: Log, topic: str, key: str, most: int) -> Mapping[TopicQueue, list[int]] | None:
    """Return the distinct queue offsets of each queue, ascending."""
    found = log.places_of_key(topic, key, most)
    if found is None:
        return None
    offsets: dict[TopicQueue, list[int]] = {}
    for queue, offset in sorted(set(found), key=lambda place: place.offset):
        offsets.setdefault(queue, []).append(offset)
    return offsets


def _at_places(whole: QueueRange, places: list[int]) -> QueueRange:
    within = places[bisect.bisect_left(places, whole.start) : bisect.bisect_left(places, whole.end)]
    return replace(whole, places=tuple(within))
