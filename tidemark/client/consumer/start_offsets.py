"""StartOffsets: where a consumer starts in queues without a committed offset."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Literal
from urllib.parse import quote

from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.query import Query
from tidemark.errors import MessageNotFoundError, TopicNotFoundError

Place = int | Literal["earliest", "latest"] | datetime


class StartOffsets:
    """Resolves the setting `start` of a consumer.

    `latest` and an offset apply to the queues that existed when the consumer started. A younger queue starts at its
    earliest message. So does a queue without an offset if the group has committed other offsets in its topic: the queue
    is younger than the group. The queues of other topics (those of retries) start at their earliest message.

    topics  the consumer's topics
    named   the queues, if the program named queues: an offset then applies to each of them
    end_of  returns the visible end of one named queue; default: ask the service
    """

    def __init__(
        self,
        query: Query,
        start: Place,
        *,
        group: str | None,
        topics: Collection[str],
        named: Collection[TopicQueue] = (),
        end_of: Callable[[TopicQueue], int] | None = None,
    ) -> None:
        self._query = query
        self._start = start
        self._group = group
        self._topics = frozenset(topics)
        self._named = frozenset(named)
        self._end_of = end_of
        self._ends: dict[TopicQueue, int] | None = None
        self._known: frozenset[str] = frozenset()

    def prepare(self) -> None:
        """Record the queues and their ends, once and before the consumer joins its group."""
        if self._ends is not None or self._start == "earliest" or isinstance(self._start, datetime):
            return
        known = frozenset() if self._group is None else self._recorded_topics(self._group)
        if self._end_of is not None and self._named:
            self._ends = {queue: self._end_of(queue) for queue in self._named}
        else:
            self._ends = {queue: end for topic in sorted(self._topics) for queue, end in self._ends_of(topic).items()}
        self._known = known

    def begin(self, queue: TopicQueue) -> int | str:
        """Return the offset at which *queue* starts, or "earliest"."""
        if queue.topic not in self._topics or self._start == "earliest":
            return "earliest"
        if isinstance(self._start, datetime):
            return int(self._query.offset_at(*queue, int(self._start.timestamp() * 1000))["offset"])
        if isinstance(self._start, int) and queue in self._named:
            return self._start
        assert self._ends is not None
        end = self._ends.pop(queue, None)  # once: after its topic was deleted, a queue of the same name is a new queue
        if end is None or queue.topic in self._known:
            return "earliest"
        return self._start if isinstance(self._start, int) else end

    def _recorded_topics(self, group: str) -> frozenset[str]:
        try:
            answer = self._query.get(f"/v1/groups/{quote(group, safe='')}")
        except MessageNotFoundError:
            return frozenset()
        return frozenset(one["topic"] for one in answer["queues"])

    def _ends_of(self, topic: str) -> dict[TopicQueue, int]:
        try:
            answer = self._query.get(f"/v1/topics/{quote(topic, safe='')}")
        except TopicNotFoundError:
            return {}
        ends = {TopicQueue(topic, queue_id): 0 for queue_id in answer["queue_ids"]}
        ends |= {TopicQueue(topic, one["queue_id"]): one["max_offset"] for one in answer["queues"]}
        return ends
