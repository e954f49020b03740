"""Membership: one member's lease on a share of a group's queues. A thread of its own keeps it alive.

Hand-over is cooperative: a queue that the group gives to somebody else stays this member's until it lets go of it, so
that it can commit before. A member that was silent for longer than its session is fenced: it joins again, and what it
held may be another's meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote

from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.problems import Json
from tidemark.client.rest.query import Query
from tidemark.errors import GenerationStaleError, MemberFencedError, StoreError, UnavailableError
from tidemark.format.topic_name import retry_topics


class Assignment(NamedTuple):
    """What a member may read. incarnation: rises when it had to join again, and all it held before is lost.

    offsets  the group's, of each queue; None where it has none
    """

    incarnation: int
    generation: int
    offsets: Mapping[TopicQueue, int | None]

    @property
    def queues(self) -> frozenset[TopicQueue]:
        """Its queues."""
        return frozenset(self.offsets)


class Membership:
    """A member of *group* that wants a share of the queues of *topics*. `start`, then `close`.

    strategy                averagely or consistent_hash
    max_poll_interval_s     a consumer that does not call `assignment` for so long leaves the group
    on_change               called in this object's thread when the assignment may have changed
    """

    has_seen_topics = True

    def __init__(
        self,
        query: Query,
        group: str,
        topics: Collection[str],
        *,
        strategy: str,
        session_timeout_ms: int | None,
        max_poll_interval_s: float,
        on_change: Callable[[], None],
    ) -> None:
        self.group = group
        self._query = query
        self._path = f"/v1/groups/{quote(group, safe='')}"
        self._topics = sorted(set(topics))
        self._request: Json = {"topics": self._topics, "strategy": strategy, "member_id": uuid.uuid4().hex}
        if session_timeout_ms is not None:
            self._request["session_timeout_ms"] = session_timeout_ms
        self._max_poll_interval_s = max_poll_interval_s
        self._on_change = on_change
        self._lock = threading.Lock()  # one request at a time: a commit and a heartbeat tell the same generation
        self._state = threading.Lock()  # around the two below: what was told is in use once the consumer has seen it
        self._assignment = Assignment(0, 0, {})
        self._in_use: frozenset[TopicQueue] = frozenset()
        self._incarnation = 0  # that the consumer has seen: what it has read since is all it may commit
        self._wake = threading.Event()
        self._closed = False
        self._member_id: str | None = None  # None: to be joined
        self._heartbeat_s = 1.0
        self._last_poll = time.monotonic()
        self._error: StoreError | None = None
        self._thread = threading.Thread(target=self._run, name="tidemark-member", daemon=True)

    @property
    def member_id(self) -> str | None:
        """As the service knows it; None while it is no member."""
        return self._member_id

    @property
    def topics(self) -> list[str]:
        """The topics that the program subscribed to."""
        return self._topics

    def add_retry_topics(self) -> None:
        """Subscribe to the group's retry topics as well; ValueError if this is a member already and did not."""
        topics = sorted({*self._topics, *retry_topics(self.group, self._topics)})
        if topics != self._request["topics"]:
            if self._member_id is not None:
                raise ValueError("this consumer reads already: call consume before the first poll")
            self._request["topics"] = topics

    def start(self) -> None:
        """Become a member; a StoreError when the service refuses, UnavailableError when it does not answer."""
        with self._lock:
            if self._member_id is None:
                self._join()
        if not self._thread.is_alive():
            self._thread.start()

    def assignment(self) -> Assignment:
        """As the service told last; its queues are in use from now on.

        raises what the service refused this member with, other than for being late
        """
        self._last_poll = time.monotonic()
        if self._error is not None and not isinstance(self._error, UnavailableError):
            raise self._error
        if self._member_id is None:
            self._wake.set()
        with self._state:
            self._in_use |= self._assignment.queues
            self._incarnation = self._assignment.incarnation
            return self._assignment

    def let_go(self, queues: frozenset[TopicQueue]) -> None:
        """*queues* are in use no more: others may have them, if this member was told that it loses them."""
        with self._state:
            self._in_use -= queues
        self._wake.set()

    def commit(self, offsets: Mapping[TopicQueue, int]) -> None:
        """Put *offsets* on record, all or none; durable when this returns.

        raises GenerationStaleError when a queue among them is not this member's any more
        """
        with self._lock:
            if self._member_id is None or self._incarnation != self._assignment.incarnation:
                raise GenerationStaleError("this consumer was out of its group since it read these messages")
            self._query.put(
                f"{self._path}/offsets",
                {
                    "member_id": self._member_id,
                    "generation": self._assignment.generation,
                    "offsets": [{**_named(queue), "offset": offset} for queue, offset in offsets.items()],
                },
            )

    def close(self) -> None:
        """Leave the group; a service that does not answer finds out when the session is over."""
        self._closed = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock, contextlib.suppress(UnavailableError):
            self._leave()

    # ── its thread ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(self._heartbeat_s)
            self._wake.clear()
            if self._closed:
                return
            before = self._assignment
            with self._lock:
                self._beat()
            if self._assignment is not before or self._error is not None:
                self._on_change()

    def _beat(self) -> None:
        is_late = time.monotonic() - self._last_poll > self._max_poll_interval_s
        try:
            if is_late:
                self._leave()
            elif self._member_id is None:
                self._join()
            else:
                self._keep_alive(self._member_id)
            self._error = None
        except MemberFencedError:
            self._lose_all()
            self._wake.set()
        except StoreError as error:
            self._error = error

    def _join(self) -> None:
        answer = self._query.post(f"{self._path}/members", self._request)
        self._member_id = answer["member_id"]
        self._heartbeat_s = answer["heartbeat_interval_ms"] / 1000
        with self._state:
            self._in_use = frozenset()
            self._learn(answer, incarnation=self._assignment.incarnation + 1)

    def _keep_alive(self, member_id: str) -> None:
        with self._state:
            holds = self._assignment.queues | self._in_use
        answer = self._query.put(
            f"{self._path}/members/{quote(member_id, safe='')}",
            {"generation": self._assignment.generation, "holds": [_named(queue) for queue in sorted(holds)]},
        )
        with self._state:
            self._learn(answer, incarnation=self._assignment.incarnation)

    def _learn(self, answer: Json, *, incarnation: int) -> None:
        offsets = {TopicQueue(one["topic"], one["queue_id"]): one["offset"] for one in answer["assigned"]}
        known = self._assignment
        if (incarnation, offsets.keys()) == (known.incarnation, known.offsets.keys()):
            self._assignment = known._replace(generation=answer["generation"])
        else:
            self._assignment = Assignment(incarnation, answer["generation"], offsets)

    def _leave(self) -> None:
        member_id = self._member_id
        if member_id is not None:
            generation = self._assignment.generation  # who has taken this one's place stays
            self._lose_all()
            self._query.delete(f"{self._path}/members/{quote(member_id, safe='')}?generation={generation}")

    def _lose_all(self) -> None:
        """No member any more."""
        with self._state:
            self._member_id = None
            self._in_use = frozenset()
            self._assignment = Assignment(self._assignment.incarnation + 1, self._assignment.generation, {})


def _named(queue: TopicQueue) -> Json:
    return {"topic": queue.topic, "queue_id": queue.queue_id}


def commit_as_administrator(query: Query, group: str, offsets: Iterable[tuple[TopicQueue, int]]) -> None:
    """Put offsets of a group on record that has no members now, all or none; GroupActiveError while it has."""
    body = {"offsets": [{**_named(queue), "offset": offset} for queue, offset in offsets]}
    query.put(f"/v1/groups/{quote(group, safe='')}/offsets", body)
