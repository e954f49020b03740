"""The members of one group: the queues that are allocated to each, and those that each holds. No clock, lock or HTTP.

Hand-over is cooperative. If the allocation moves a queue, its holder keeps it until it releases it; only then is the
queue given to its new owner. So no queue is ever held by two members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidemark.errors import GenerationStaleError, MemberFencedError

from ..queue_allocation import Queue, Strategy, allocate

QueueIds = Mapping[str, tuple[int, ...] | None]
"""topic → its queues; None if the topic does not exist."""


@dataclass
class Member:
    """One incarnation of a member.

    Attributes:
        heard_s: time of its last join or heartbeat, on the clock of the caller of `GroupMembers.expired`.
        joined: generation that its join made; a caller with an older one is an earlier incarnation.
        leased: generation of its last lease.
        holds: queues that it was given and has not released.
    """

    topics: frozenset[str]
    session_timeout_ms: int
    heard_s: float
    joined: int = 0
    leased: int = 0
    holds: set[Queue] = field(default_factory=set)


class MemberLease(NamedTuple):
    """The answer to a member's join or heartbeat.

    Attributes:
        assigned: queues that it may consume, by topic and id: allocated to it, and held by no other member.
        unknown_topics: those of its topics that do not exist, by name.
        has_new: True if some of *assigned* are given to it by this lease.
    """

    member_id: str
    generation: int
    session_timeout_ms: int
    members: list[str]
    assigned: list[Queue]
    unknown_topics: list[str]
    has_new: bool


class MemberState(NamedTuple):
    """One member in answers about its group."""

    member_id: str
    topics: list[str]
    session_timeout_ms: int
    heartbeat_age_ms: int
    holds: list[Queue]


class GroupState(NamedTuple):
    """A group that has members."""

    generation: int
    strategy: Strategy
    topics: frozenset[str]
    members: list[MemberState]


def fenced(member_id: str, generation: int | None) -> MemberFencedError:
    """Return the error for a caller that is not, or no longer, a member."""
    return MemberFencedError(
        f"{member_id} is not a member of this group: join again", member_id=member_id, generation=generation
    )


class GroupMembers:
    """Members of one group and the queues that they hold. Every change of members or queues makes a new generation."""

    def __init__(self, strategy: Strategy, *, store: str, generation: int) -> None:
        self.strategy = strategy
        self.generation = generation
        self.members: dict[str, Member] = {}
        self._store = store
        self._queue_ids: dict[str, tuple[int, ...] | None] = {}
        self._meant: dict[str, list[Queue]] = {}
        self._holders: dict[Queue, str] = {}  # the inverse of the members' `holds`

    @property
    def topics(self) -> frozenset[str]:
        """Topics that any member subscribes to."""
        return frozenset().union(*(member.topics for member in self.members.values()))

    # -- changes --------------------------------------------------------------------------------------------------

    def join(self, member_id: str, member: Member, queue_ids: QueueIds) -> None:
        """Add *member*. It replaces a live member with the same id, whose queues are freed and whose lease is stale."""
        self._forget(member_id)
        self.members[member_id] = member
        self._queue_ids.update(queue_ids)
        self._rebalance()
        member.joined = self.generation

    def remove(self, member_ids: Iterable[str]) -> None:
        """Remove these members; their queues are free at once."""
        for member_id in member_ids:
            self._forget(member_id)
        self._rebalance()

    def learn(self, queue_ids: QueueIds) -> None:
        """Update the topics' queues, and rebalance if they have changed."""
        wanted = self.topics
        news = {topic: ids for topic, ids in queue_ids.items() if topic in wanted}
        if {topic: self._queue_ids.get(topic) for topic in news} != news:
            self._queue_ids.update(news)
            self._rebalance()

    def hear(self, member_id: str, *, generation: int, holds: Collection[Queue], now_s: float) -> None:
        """Renew a member's session and release its queues that are not in *holds*. Other queues in *holds* are ignored.

        Raises:
            MemberFencedError: the member is unknown, or *generation* is not one since its join.
        """
        member = self.members.get(member_id)
        if member is None or not member.joined <= generation <= member.leased:
            raise fenced(member_id, self.generation)
        member.heard_s = now_s
        self._free(member, member.holds.difference(holds))

    def lease(self, member_id: str) -> MemberLease:
        """Return the member's lease. From now on the member holds the assigned queues."""
        member = self.members[member_id]
        meant = self._meant[member_id]
        assigned = [queue for queue in meant if self._holders.setdefault(queue, member_id) == member_id]
        has_new = not member.holds.issuperset(assigned)
        member.holds.update(assigned)
        member.leased = self.generation
        unknown = [topic for topic in sorted(member.topics) if self._queue_ids.get(topic) is None]
        return MemberLease(
            member_id, self.generation, member.session_timeout_ms, sorted(self.members), assigned, unknown, has_new
        )

    # -- restart of the service -----------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the whole state, for `from_json`."""
        return {
            "strategy": self.strategy.value,
            "generation": self.generation,
            "queue_ids": self._queue_ids,
            "members": {
                member_id: {
                    "topics": sorted(member.topics),
                    "session_timeout_ms": member.session_timeout_ms,
                    "joined": member.joined,
                    "told": member.leased,
                    "holds": [list(queue) for queue in sorted(member.holds)],
                }
                for member_id, member in self.members.items()
            },
        }

    @classmethod
    def from_json(cls, content: dict[str, Any], *, store: str, now_s: float) -> GroupMembers:
        """Restore a group. All sessions begin anew, because no member could send heartbeats while no process listened.

        Raises:
            KeyError, TypeError, ValueError: *content* is not from `to_json`.
        """
        generation = int(content["generation"])
        membership = cls(Strategy(content["strategy"]), store=store, generation=generation - 1)
        for member_id, one in content["members"].items():
            holds = {Queue(str(topic), int(queue_id)) for topic, queue_id in one["holds"]}
            membership.members[member_id] = Member(
                frozenset(one["topics"]),
                int(one["session_timeout_ms"]),
                now_s,
                joined=int(one["joined"]),
                leased=int(one["told"]),
                holds=holds,
            )
            membership._holders.update(dict.fromkeys(holds, member_id))
        queue_ids = content["queue_ids"].items()
        membership._queue_ids = {topic: None if ids is None else tuple(ids) for topic, ids in queue_ids}
        membership._rebalance()  # raises the generation to its old value; members and queues determine the allocation
        return membership

    # -- state and checks -----------------------------------------------------------------------------------------

    def expired(self, now_s: float) -> list[str]:
        """Return the ids of members whose session has timed out."""
        return [
            member_id
            for member_id, member in self.members.items()
            if now_s - member.heard_s >= member.session_timeout_ms / 1000
        ]

    def state(self, now_s: float) -> GroupState:
        """Return the group's state, with members by id."""
        members = [
            MemberState(
                member_id,
                sorted(member.topics),
                member.session_timeout_ms,
                int((now_s - member.heard_s) * 1000),
                sorted(member.holds),
            )
            for member_id, member in sorted(self.members.items())
        ]
        return GroupState(self.generation, self.strategy, self.topics, members)

    def require_holder(self, member_id: str, *, generation: int, queues: Collection[Queue]) -> None:
        """Raise GenerationStaleError unless the member's last lease has *generation* and it holds all of *queues*."""
        member = self.members.get(member_id)
        if member is None:
            why = f"{member_id} is not a member of this group"
        elif member.leased != generation:
            why = f"generation is {generation}, but the last lease of {member_id} has {member.leased}"
        elif not member.holds.issuperset(queues):
            topic, queue_id = min(set(queues) - member.holds)
            why = f"{member_id} does not hold queue {queue_id} of {topic}"
        else:
            return
        raise GenerationStaleError(why, member_id=member_id, generation=self.generation)

    # -- internals ------------------------------------------------------------------------------------------------

    def _forget(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._free(member, set(member.holds))

    def _free(self, member: Member, queues: set[Queue]) -> None:
        member.holds -= queues
        for queue in queues:
            del self._holders[queue]

    def _rebalance(self) -> None:
        self.generation += 1
        wanted = self.topics
        self._queue_ids = {topic: ids for topic, ids in self._queue_ids.items() if topic in wanted}
        self._meant = allocate(
            self.strategy,
            subscriptions={member_id: member.topics for member_id, member in self.members.items()},
            queue_ids={topic: ids or () for topic, ids in self._queue_ids.items()},
            store=self._store,
        )
