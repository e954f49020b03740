"""GroupMember: one member's lease on a share of a group's queues. Its own thread keeps the lease alive.

Hand-over is cooperative: a queue that the group assigns to another member stays with this member until it releases the
queue, so that it can commit first. A member that was silent for longer than its session timeout is fenced: it joins
again, and its former queues may belong to other members by then.
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
    """The queues that a member may read. incarnation: grows with each new join, which loses all earlier queues.

    offsets  the group's offset by queue; None if it has none
    """

    incarnation: int
    generation: int
    offsets: Mapping[TopicQueue, int | None]

    @property
    def queues(self) -> frozenset[TopicQueue]:
        """Return the assigned queues."""
        return frozenset(self.offsets)


class GroupMember:
    """A member of *group* that reads a share of the queues of *topics*. Call `start`, then `close`.

    strategy                averagely or consistent_hash
    max_poll_interval_s     the consumer leaves the group if it does not call `assignment` for this long
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
        # one request at a time, so that a commit and a heartbeat send the same generation
        self._lock = threading.Lock()
        # guards the two fields below: an assigned queue is in use once the consumer has seen it
        self._state = threading.Lock()
        self._assignment = Assignment(0, 0, {})
        self._in_use: frozenset[TopicQueue] = frozenset()
        self._incarnation = 0  # the one that the consumer has seen: it may only commit messages read since then
        self._wake = threading.Event()
        self._closed = False
        self._member_id: str | None = None  # None: not joined
        self._heartbeat_s = 1.0
        self._last_poll = time.monotonic()
        self._error: StoreError | None = None
        self._thread = threading.Thread(target=self._run, name="tidemark-member", daemon=True)

    @property
    def member_id(self) -> str | None:
        """Return the member's id at the service; None if it is not a member."""
        return self._member_id

    @property
    def topics(self) -> list[str]:
        """The topics that the program subscribed to."""
        return self._topics

    def add_retry_topics(self) -> None:
        """Also subscribe to the group's retry topics; raise ValueError if this is a member that did not."""
        topics = sorted({*self._topics, *retry_topics(self.group, self._topics)})
        if topics != self._request["topics"]:
            if self._member_id is not None:
                raise ValueError("this consumer has already joined its group: call consume before the first poll")
            self._request["topics"] = topics

    def start(self) -> None:
        """Join the group. Raises the StoreError of a refusal, UnavailableError if the service does not answer."""
        with self._lock:
            if self._member_id is None:
                self._join()
        if not self._thread.is_alive():
            self._thread.start()

    def assignment(self) -> Assignment:
        """Return the latest assignment; its queues are in use from now on.

        raises the service's refusal of this member; a fenced member joins again instead
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

    def release(self, queues: frozenset[TopicQueue]) -> None:
        """Release *queues*: other members get those that this member has to give up."""
        with self._state:
            self._in_use -= queues
        self._wake.set()

    def commit(self, offsets: Mapping[TopicQueue, int]) -> None:
        """Commit *offsets*, all or none; durable when this returns.

        raises GenerationStaleError if a queue among them does not belong to this member any more
        """
        with self._lock:
            if self._member_id is None or self._incarnation != self._assignment.incarnation:
                raise GenerationStaleError("this consumer has left its group since it read these messages")
            self._query.put(
                f"{self._path}/offsets",
                {
                    "member_id": self._member_id,
                    "generation": self._assignment.generation,
                    "offsets": [{**_named(queue), "offset": offset} for queue, offset in offsets.items()],
                },
            )

    def close(self) -> None:
        """Leave the group. If the service does not answer, it removes the member after the session timeout."""
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
            generation = self._assignment.generation  # the service keeps a member that has replaced this one
            self._lose_all()
            self._query.delete(f"{self._path}/members/{quote(member_id, safe='')}?generation={generation}")

    def _lose_all(self) -> None:
        """Note that this is not a member any more."""
        with self._state:
            self._member_id = None
            self._in_use = frozenset()
            self._assignment = Assignment(self._assignment.incarnation + 1, self._assignment.generation, {})


def _named(queue: TopicQueue) -> Json:
    return {"topic": queue.topic, "queue_id": queue.queue_id}


def commit_as_administrator(query: Query, group: str, offsets: Iterable[tuple[TopicQueue, int]]) -> None:
    """Commit offsets of a group without members, all or none; raise GroupActiveError if it has members."""
    body = {"offsets": [{**_named(queue), "offset": offset} for queue, offset in offsets]}
    query.put(f"/v1/groups/{quote(group, safe='')}/offsets", body)
