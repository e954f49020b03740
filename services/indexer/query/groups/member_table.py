"""Members of all groups, their sessions and generations: the table that one process keeps, in memory.

After an orderly stop the next process takes the table over (`members_file`); after any other end everybody is unknown
and joins again. What a group has committed lies in the offsets, not here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from tidemark.errors import (
    GenerationStaleError,
    GroupActiveError,
    GroupFullError,
    GroupStrategyConflictError,
)

from ..queue_allocation import Queue, Strategy
from .group_membership import GroupState, Lease, Member, Membership, QueueIds, fenced

_log = structlog.get_logger()


class Leases:
    """Who is a member of what, and holds what. Safe for several threads; nothing here reads a file.

    store      the store's name: part of a queue's place on the ring of consistent hash
    clock      seconds that only rise
    epoch_ms   where the generations of a new group begin: above those of the process before this one
    """

    def __init__(
        self,
        store: str,
        *,
        max_groups: int,
        max_members: int,
        clock: Callable[[], float] = time.monotonic,
        epoch_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._store = store
        self._max_groups = max_groups
        self._max_members = max_members
        self._clock = clock
        self._epoch_ms = epoch_ms
        self._lock = threading.Lock()
        self._groups: dict[str, Membership] = {}  # none without members
        self._highest = 0  # generation of any group that is gone
        self.rebalances = 0
        self.fenced_commits = 0

    # -- what members do ------------------------------------------------------------------------------------------

    def join(
        self,
        group: str,
        member_id: str,
        topics: Collection[str],
        *,
        strategy: Strategy,
        session_timeout_ms: int,
        queue_ids: QueueIds,
    ) -> Lease:
        """Take a member in; it takes the place of a living one of its id.

        queue_ids  of its topics, and of those that the group has already
        raises     GroupStrategyConflictError, GroupFullError
        """
        with self._lock:
            membership = self._living(group)
            if membership is None:
                membership = self._begin(group, strategy)
            others = membership.members.keys() - {member_id}
            if not others:
                membership.strategy = strategy
            elif membership.strategy is not strategy:
                raise GroupStrategyConflictError(
                    f"the members of group {group} share queues by {membership.strategy.value}",
                    group=group,
                    strategy=membership.strategy.value,
                )
            elif len(others) >= self._max_members:
                raise GroupFullError(f"group {group} has all the members it may have", limit=self._max_members)
            member = Member(frozenset(topics), session_timeout_ms, self._clock())
            membership.join(member_id, member, queue_ids)
            self._note(group, membership, "joined")
            return membership.lease(member_id)

    def heartbeat(
        self, group: str, member_id: str, *, generation: int, holds: Collection[Queue], queue_ids: QueueIds
    ) -> Lease:
        """A member lives, holds no more than *holds*, and is told what is its own now.

        queue_ids  of the group's topics, as they are now
        raises     MemberFencedError: it must join again
        """
        with self._lock:
            membership = self._living(group)
            if membership is None:
                raise fenced(member_id, None)
            membership.hear(member_id, generation=generation, holds=holds, now_s=self._clock())
            before = membership.generation
            membership.learn(queue_ids)
            if membership.generation != before:
                self._note(group, membership, "queues_changed")
            return membership.lease(member_id)

    def leave(self, group: str, member_id: str, generation: int | None = None) -> None:
        """Its queues are free at once. Nothing for whom nobody knows.

        generation  what the leaver was told last: an incarnation that was replaced does not take its successor along
        """
        with self._lock:
            membership = self._living(group)
            member = None if membership is None else membership.members.get(member_id)
            if member is not None and (generation is None or generation >= member.joined):
                self._remove(group, member_id, why="left")

    def expire(self) -> None:
        """Let go of all members whose session is over."""
        with self._lock:
            for group in list(self._groups):
                self._living(group)

    # -- what offsets need ----------------------------------------------------------------------------------------

    @contextmanager
    def as_holder(self, group: str, member_id: str, *, generation: int, queues: Collection[Queue]) -> Iterator[None]:
        """While it is entered, the member lives, was told *generation* last, and holds *queues*.

        raises GenerationStaleError otherwise
        """
        with self._lock:
            membership = self._living(group)
            try:
                if membership is None:
                    raise GenerationStaleError(f"group {group} has no members", member_id=member_id, generation=None)
                membership.require_holder(member_id, generation=generation, queues=queues)
            except GenerationStaleError:
                self.fenced_commits += 1
                raise
            yield

    @contextmanager
    def without_members(self, group: str) -> Iterator[None]:
        """While it is entered, the group has no living member. GroupActiveError otherwise."""
        with self._lock:
            membership = self._living(group)
            if membership is not None:
                raise GroupActiveError(
                    f"group {group} has members: only they set its offsets",
                    group=group,
                    members=len(membership.members),
                    generation=membership.generation,
                )
            yield

    # -- questions ------------------------------------------------------------------------------------------------

    def topics(self, group: str) -> frozenset[str]:
        """What its members subscribe to."""
        with self._lock:
            membership = self._groups.get(group)
            return frozenset() if membership is None else membership.topics

    def generation(self, group: str) -> int | None:
        """The one of now; None without members."""
        with self._lock:
            membership = self._living(group)
            return None if membership is None else membership.generation

    def state(self, group: str) -> GroupState | None:
        """The group with its members; None without any."""
        with self._lock:
            membership = self._living(group)
            return None if membership is None else membership.state(self._clock())

    def states(self) -> dict[str, GroupState]:
        """All groups with members, by name."""
        with self._lock:
            living = {group: self._living(group) for group in sorted(self._groups)}
            return {group: one.state(self._clock()) for group, one in living.items() if one is not None}

    # -- over a restart -------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """All groups, for `take_over`."""
        with self._lock:
            return {group: membership.to_json() for group in list(self._groups) if (membership := self._living(group))}

    def take_over(self, groups: dict[str, Any]) -> None:
        """Go on with the groups of another process; KeyError, TypeError or ValueError, and none, for something else."""
        now_s = self._clock()
        taken = {
            group: Membership.from_json(content, store=self._store, now_s=now_s) for group, content in groups.items()
        }
        with self._lock:
            self._groups = taken | self._groups

    # -- inside, under the lock -----------------------------------------------------------------------------------

    def _begin(self, group: str, strategy: Strategy) -> Membership:
        if len(self._groups) >= self._max_groups:
            raise GroupFullError("as many groups have members as may have", limit=self._max_groups)
        generation = max(self._highest, self._epoch_ms())
        membership = self._groups[group] = Membership(strategy, store=self._store, generation=generation)
        return membership

    def _living(self, group: str) -> Membership | None:
        """The group without the members whose session is over."""
        membership = self._groups.get(group)
        if membership is not None and (over := membership.expired(self._clock())):
            self._remove(group, *over, why="expired")
        return self._groups.get(group)

    def _remove(self, group: str, *member_ids: str, why: str) -> None:
        membership = self._groups[group]
        membership.remove(member_ids)
        self._note(group, membership, why, member_ids)
        if not membership.members:
            self._highest = max(self._highest, membership.generation)
            del self._groups[group]

    def _note(self, group: str, membership: Membership, why: str, gone: Collection[str] = ()) -> None:
        self.rebalances += 1
        _log.info(
            "group_rebalanced",
            group=group,
            generation=membership.generation,
            members=len(membership.members),
            why=why,
            gone=list(gone),
        )
