"""The members of one group: which queues are meant for each, and which each one holds. No clock, no lock, no HTTP.

Hand-over is cooperative. A queue that the allocation moves stays with its holder until that one has let go of it; only
then is it handed to the new owner. So no queue is ever held by two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidemark.errors import GenerationStaleError, MemberFencedError

from ..queue_allocation import Queue, Strategy, allocate

QueueIds = Mapping[str, tuple[int, ...] | None]
"""topic → its queues; None: there is no such topic."""


@dataclass
class Member:
    """One incarnation of a member.

    heard_s  when it was heard last, on the clock of whoever asks `Membership.expired`
    joined   generation that its join made: whoever knows only an older one is an incarnation before it
    told     generation it was told last
    holds    what was handed to it and it has not let go of
    """

    topics: frozenset[str]
    session_timeout_ms: int
    heard_s: float
    joined: int = 0
    told: int = 0
    holds: set[Queue] = field(default_factory=set)


class Lease(NamedTuple):
    """What a member is told.

    assigned        queues it may consume: meant for it, and held by nobody else; by topic and id
    unknown_topics  of its own, by name
    has_new         whether some of *assigned* have just been handed to it
    """

    member_id: str
    generation: int
    session_timeout_ms: int
    members: list[str]
    assigned: list[Queue]
    unknown_topics: list[str]
    has_new: bool


class MemberState(NamedTuple):
    """One member, as others see it."""

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
    """What is told to somebody who is no member, or not any more."""
    return MemberFencedError(
        f"{member_id} is no member of this group any more: join again", member_id=member_id, generation=generation
    )


class Membership:
    """Members of one group, and who holds what. Every change of members or queues makes a new generation."""

    def __init__(self, strategy: Strategy, *, store: str, generation: int) -> None:
        self.strategy = strategy
        self.generation = generation
        self.members: dict[str, Member] = {}
        self._store = store
        self._queue_ids: dict[str, tuple[int, ...] | None] = {}
        self._meant: dict[str, list[Queue]] = {}
        self._holders: dict[Queue, str] = {}  # the members' `holds`, the other way round

    @property
    def topics(self) -> frozenset[str]:
        """What any member subscribes to."""
        return frozenset().union(*(member.topics for member in self.members.values()))

    # -- changes --------------------------------------------------------------------------------------------------

    def join(self, member_id: str, member: Member, queue_ids: QueueIds) -> None:
        """Take *member* in. A living one of the same id is out of it: what it held is free, what it knows is stale."""
        self._forget(member_id)
        self.members[member_id] = member
        self._queue_ids.update(queue_ids)
        self._rebalance()
        member.joined = self.generation

    def remove(self, member_ids: Iterable[str]) -> None:
        """These are gone; their queues are free at once."""
        for member_id in member_ids:
            self._forget(member_id)
        self._rebalance()

    def learn(self, queue_ids: QueueIds) -> None:
        """Topics may have come, gone, or changed their queues."""
        wanted = self.topics
        news = {topic: ids for topic, ids in queue_ids.items() if topic in wanted}
        if {topic: self._queue_ids.get(topic) for topic in news} != news:
            self._queue_ids.update(news)
            self._rebalance()

    def hear(self, member_id: str, *, generation: int, holds: Collection[Queue], now_s: float) -> None:
        """A member lives, and has let go of what is not in *holds* any more. Nobody gets a queue by naming it.

        raises MemberFencedError for an unknown member, or one that does not know the generation of its join
        """
        member = self.members.get(member_id)
        if member is None or not member.joined <= generation <= member.told:
            raise fenced(member_id, self.generation)
        member.heard_s = now_s
        self._free(member, member.holds.difference(holds))

    def lease(self, member_id: str) -> Lease:
        """What the member is told now; it holds from now on what stands there."""
        member = self.members[member_id]
        meant = self._meant[member_id]
        assigned = [queue for queue in meant if self._holders.setdefault(queue, member_id) == member_id]
        has_new = not member.holds.issuperset(assigned)
        member.holds.update(assigned)
        member.told = self.generation
        unknown = [topic for topic in sorted(member.topics) if self._queue_ids.get(topic) is None]
        return Lease(
            member_id, self.generation, member.session_timeout_ms, sorted(self.members), assigned, unknown, has_new
        )

    # -- over a restart -------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """All of it, for `from_json`."""
        return {
            "strategy": self.strategy.value,
            "generation": self.generation,
            "queue_ids": self._queue_ids,
            "members": {
                member_id: {
                    "topics": sorted(member.topics),
                    "session_timeout_ms": member.session_timeout_ms,
                    "joined": member.joined,
                    "told": member.told,
                    "holds": [list(queue) for queue in sorted(member.holds)],
                }
                for member_id, member in self.members.items()
            },
        }

    @classmethod
    def from_json(cls, content: dict[str, Any], *, store: str, now_s: float) -> Membership:
        """The same group, each of its members just heard: nobody could be while no process listened.

        raises KeyError, TypeError, ValueError for something else
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
                told=int(one["told"]),
                holds=holds,
            )
            membership._holders.update(dict.fromkeys(holds, member_id))
        queue_ids = content["queue_ids"].items()
        membership._queue_ids = {topic: None if ids is None else tuple(ids) for topic, ids in queue_ids}
        membership._rebalance()  # the generation it had: what is meant for whom follows from members and queues
        return membership

    # -- questions ------------------------------------------------------------------------------------------------

    def expired(self, now_s: float) -> list[str]:
        """Members whose session is over."""
        return [
            member_id
            for member_id, member in self.members.items()
            if now_s - member.heard_s >= member.session_timeout_ms / 1000
        ]

    def state(self, now_s: float) -> GroupState:
        """All of it, members by id."""
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
        """GenerationStaleError unless the member lives, was told *generation* last, and holds all of *queues*."""
        member = self.members.get(member_id)
        if member is None:
            why = f"{member_id} is no member of this group any more"
        elif member.told != generation:
            why = f"generation {generation} is not the one that {member_id} was told last"
        elif not member.holds.issuperset(queues):
            topic, queue_id = min(set(queues) - member.holds)
            why = f"{member_id} does not hold queue {queue_id} of {topic}"
        else:
            return
        raise GenerationStaleError(why, member_id=member_id, generation=self.generation)

    # -- inside ---------------------------------------------------------------------------------------------------

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
