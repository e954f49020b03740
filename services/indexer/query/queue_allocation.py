"""Allocation of queues to the members of a group by RocketMQ's two strategies, as plain functions.

A RocketMQ client with the same member ids and the same store name computes the same allocation.
"""

from __future__ import annotations

import enum
import hashlib
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

_VIRTUAL_NODES = 10  # per member; the default of AllocateMessageQueueConsistentHash


class Queue(NamedTuple):
    """One queue of a topic."""

    topic: str
    queue_id: int


class Strategy(enum.Enum):
    """Strategy by which a topic's queues are allocated to members."""

    AVERAGELY = "averagely"
    CONSISTENT_HASH = "consistent_hash"


def allocate(
    strategy: Strategy,
    *,
    subscriptions: Mapping[str, Collection[str]],
    queue_ids: Mapping[str, Collection[int]],
    store: str,
) -> dict[str, list[Queue]]:
    """Allocate the queues of each topic to the members that subscribe to it.

    Args:
        subscriptions: member id → topics.
        queue_ids: topic → ids of its queues.
        store: the store's name, RocketMQ's broker name, which is part of a queue's place on the ring.

    Returns:
        member id → its queues, by topic and id; every member is included.
    """
    shares: dict[str, list[Queue]] = {member: [] for member in sorted(subscriptions)}
    for topic in sorted(queue_ids):
        members = [member for member in shares if topic in subscriptions[member]]
        if not members:
            continue
        queues = [Queue(topic, queue_id) for queue_id in sorted(queue_ids[topic])]
        if strategy is Strategy.AVERAGELY:
            owners = averagely(len(queues), members)
        else:
            owners = consistent_hash(queues, members, store)
        for queue, owner in zip(queues, owners, strict=True):
            shares[owner].append(queue)
    return shares


def averagely(count: int, members: Sequence[str]) -> list[str]:
    """Return the owner of each of *count* queues: one contiguous range per member, the first ones longer by one.

    Source: AllocateMessageQueueAveragely.allocate.
    """
    size, longer = divmod(count, len(members))
    return [member for i, member in enumerate(members) for _ in range(size + (i < longer))]


def consistent_hash(queues: Sequence[Queue], members: Sequence[str], store: str) -> list[str]:
    """Return the owner of each queue: the first virtual node at or after the queue's place on the ring.

    Source: AllocateMessageQueueConsistentHash.allocate, ConsistentHashRouter.routeNode, MessageQueue.toString.
    """
    places, owners = _ring(tuple(members))

    def owner(queue: Queue) -> str:
        name = f"MessageQueue [topic={queue.topic}, brokerName={store}, queueId={queue.queue_id}]"
        return owners[bisect_left(places, place_of(name)) % len(places)]

    return [owner(queue) for queue in queues]


@lru_cache(maxsize=16)
def _ring(members: tuple[str, ...]) -> tuple[list[int], list[str]]:
    """Return ascending places and their members. At a shared place the later member wins.

    Source: ConsistentHashRouter.addNode.
    """
    ring = {place_of(f"{member}-{i}"): member for member in members for i in range(_VIRTUAL_NODES)}
    places = sorted(ring)
    return places, [ring[place] for place in places]


def place_of(text: str) -> int:
    """Return the place of *text* on the ring: the first four bytes of its MD5, big-endian.

    Source: ConsistentHashRouter.MD5Hash.
    """
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:4], "big")
