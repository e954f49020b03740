"""Which member of a group gets which queue: RocketMQ's two strategies, as plain functions.

With the same ids of members and the same store name a RocketMQ client comes to the same result.
"""

from __future__ import annotations

import enum
import hashlib
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

_VIRTUAL_NODES = 10  # a member; AllocateMessageQueueConsistentHash's default


class Queue(NamedTuple):
    """One queue of a topic."""

    topic: str
    queue_id: int


class Strategy(enum.Enum):
    """How a topic's queues are shared out."""

    AVERAGELY = "averagely"
    CONSISTENT_HASH = "consistent_hash"


def allocate(
    strategy: Strategy,
    *,
    subscriptions: Mapping[str, Collection[str]],
    queue_ids: Mapping[str, Collection[int]],
    store: str,
) -> dict[str, list[Queue]]:
    """Every member's queues: those of each topic are shared out among the members that subscribe to it.

    subscriptions  member id → topics
    queue_ids      topic → its queues
    store          its name, a broker name to RocketMQ: part of a queue's place on the ring
    returns        all members; each one's queues by topic and id
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
    """The owner of each of *count* queues: one stretch a member, those of the first members longer by one.

    spec  AllocateMessageQueueAveragely.allocate
    """
    size, longer = divmod(count, len(members))
    return [member for i, member in enumerate(members) for _ in range(size + (i < longer))]


def consistent_hash(queues: Sequence[Queue], members: Sequence[str], store: str) -> list[str]:
    """The owner of each queue: the first virtual node at or behind the queue's place on a ring.

    spec  AllocateMessageQueueConsistentHash.allocate, ConsistentHashRouter.routeNode, MessageQueue.toString
    """
    places, owners = _ring(tuple(members))

    def owner(queue: Queue) -> str:
        name = f"MessageQueue [topic={queue.topic}, brokerName={store}, queueId={queue.queue_id}]"
        return owners[bisect_left(places, place_of(name)) % len(places)]

    return [owner(queue) for queue in queues]


@lru_cache(maxsize=16)
def _ring(members: tuple[str, ...]) -> tuple[list[int], list[str]]:
    """Places, ascending, and who is there. Of two at one place the later one stays (ConsistentHashRouter.addNode)."""
    ring = {place_of(f"{member}-{i}"): member for member in members for i in range(_VIRTUAL_NODES)}
    places = sorted(ring)
    return places, [ring[place] for place in places]


def place_of(text: str) -> int:
    """Where *text* lies on the ring: the first four bytes of its MD5, big-endian (ConsistentHashRouter.MD5Hash)."""
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:4], "big")
