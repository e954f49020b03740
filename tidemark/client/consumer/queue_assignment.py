"""The queues that a consumer reads: named ones, or all of some topics. `group_member` has a group member's share."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping
from typing import Protocol
from urllib.parse import quote

from tidemark.client.consumer.group_member import Assignment, commit_as_administrator
from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.query import Query
from tidemark.errors import MessageNotFoundError, TopicNotFoundError, UnavailableError

_TOPIC_AGE_S, _MISSING_AGE_S = 30.0, 1.0


class QueueAssignment(Protocol):
    """Source of queues, and storage of their offsets. has_seen_topics: the service has listed the queues."""

    @property
    def has_seen_topics(self) -> bool: ...

    def start(self) -> None: ...

    def assignment(self) -> Assignment: ...

    def release(self, queues: frozenset[TopicQueue]) -> None: ...

    def commit(self, offsets: Mapping[TopicQueue, int]) -> None: ...

    def close(self) -> None: ...


class NamedQueues:
    """The queues that the program named. *group* only stores offsets; it does not share queues."""

    has_seen_topics = False

    def __init__(self, query: Query, queues: Iterable[TopicQueue], group: str | None) -> None:
        self._query = query
        self._queues = sorted(set(queues))
        self._group = group
        self._assignment = Assignment(0, 0, {})

    def start(self) -> None:
        """Get the group's offsets."""
        self._assignment = Assignment(1, 0, self._with_offsets())

    def _with_offsets(self) -> dict[TopicQueue, int | None]:
        found: dict[TopicQueue, int | None] = dict.fromkeys(self._queues)
        if self._group is not None:
            try:
                group = self._query.get(f"/v1/groups/{quote(self._group, safe='')}")
            except MessageNotFoundError:
                return found
            for one in group["queues"]:
                queue = TopicQueue(one["topic"], one["queue_id"])
                if queue in found:
                    found[queue] = one["offset"]
        return found

    def assignment(self) -> Assignment:
        """Return the assignment, which never changes."""
        return self._assignment

    def release(self, queues: frozenset[TopicQueue]) -> None:
        """Do nothing: no other member waits for the queues."""

    def commit(self, offsets: Mapping[TopicQueue, int]) -> None:
        """Commit *offsets*, all or none. Needs a group."""
        assert self._group is not None, "the consumer refuses a commit without a group"
        commit_as_administrator(self._query, self._group, offsets.items())

    def close(self) -> None:
        """Do nothing: there is no membership to end."""


class AllQueues(NamedQueues):
    """All queues of *topics*, including queues that are added later; without a group.

    is_one_of_several  the consumer reads several stores: each topic is in at least one of them
    """

    has_seen_topics = True

    def __init__(self, query: Query, topics: Iterable[str], *, is_one_of_several: bool = False) -> None:
        super().__init__(query, (), None)
        self._topics = sorted(set(topics))
        self._is_one_of_several = is_one_of_several
        self._looked_at = 0.0
        self._is_complete = True

    def start(self) -> None:
        """Look up the queues; raise TopicNotFoundError for a topic that does not exist, if there is only one store."""
        look_up = self._queues_if_any if self._is_one_of_several else self._queues_of
        self._learn({topic: look_up(topic) for topic in self._topics})

    def assignment(self) -> Assignment:
        """Return the queues; refresh them every 30 s, or every second while a topic has none.

        If the service is unavailable, keep them; pulls report that.
        """
        age_s = _TOPIC_AGE_S if self._is_complete else _MISSING_AGE_S
        if time.monotonic() - self._looked_at > age_s:
            self._looked_at = time.monotonic()
            with contextlib.suppress(UnavailableError):
                self._learn({topic: self._queues_if_any(topic) for topic in self._topics})
        return self._assignment

    def _queues_of(self, topic: str) -> frozenset[TopicQueue]:
        queue_ids = self._query.get(f"/v1/topics/{quote(topic, safe='')}")["queue_ids"]
        return frozenset(TopicQueue(topic, queue_id) for queue_id in queue_ids)

    def _queues_if_any(self, topic: str) -> frozenset[TopicQueue]:
        """Return the queues of *topic*. If it was deleted, keep its queues: it may be created again."""
        try:
            return self._queues_of(topic)
        except TopicNotFoundError:
            return frozenset(queue for queue in self._assignment.queues if queue.topic == topic)

    def _learn(self, found: Mapping[str, frozenset[TopicQueue]]) -> None:
        self._looked_at = time.monotonic()
        self._is_complete = all(found.values())
        queues = frozenset().union(*found.values())
        if queues != self._assignment.queues:
            self._assignment = Assignment(1, 0, dict.fromkeys(sorted(queues)))
