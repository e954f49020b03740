"""Members of all groups, their sessions and generations, in the memory of one process.

After an orderly stop the next process takes the table over (`saved_members`); after any other stop every member is
unknown and joins again. Committed offsets are not stored here, but in `consumer_offsets`.
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
from .group_membership import GroupMembers, GroupState, Member, MemberLease, QueueIds, fenced

_log = structlog.get_logger()


class MemberTable:
    """Members of all groups and the queues that they hold. Safe for several threads; no method reads a file.

    Args:
        store: the store's name, which is part of a queue's place on the consistent-hash ring.
        clock: monotonic seconds.
        epoch_ms: first generation of a new group, above all generations of an earlier process.
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
        self._groups: dict[str, GroupMembers] = {}  # only groups with members
        self._highest = 0  # highest generation of a removed group
        self.rebalances = 0
        self.fenced_commits = 0

    # -- calls of members -----------------------------------------------------------------------------------------

    def join(
        self,
        group: str,
        member_id: str,
        topics: Collection[str],
        *,
        strategy: Strategy,
        session_timeout_ms: int,
        queue_ids: QueueIds,
    ) -> MemberLease:
        """Add a member, which replaces a live member with the same id.

        Args:
            queue_ids: queues of the member's topics and of the group's other topics.

        Raises:
            GroupStrategyConflictError: the group has other members with another strategy.
            GroupFullError: the group has max_members, or there are max_groups.
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
                    f"strategy is {strategy.value}, but the members of group {group} use {membership.strategy.value}",
                    group=group,
                    strategy=membership.strategy.value,
                )
            elif len(others) >= self._max_members:
                raise GroupFullError(
                    f"group {group} has {len(others)} members: at most {self._max_members} "
                    "(TIDEMARK_QUERY_MAX_GROUP_MEMBERS)",
                    limit=self._max_members,
                )
            member = Member(frozenset(topics), session_timeout_ms, self._clock())
            membership.join(member_id, member, queue_ids)
            self._note(group, membership, "joined")
            return membership.lease(member_id)

    def heartbeat(
        self, group: str, member_id: str, *, generation: int, holds: Collection[Queue], queue_ids: QueueIds
    ) -> MemberLease:
        """Renew a member's session, release its queues that are not in *holds*, and return its new lease.

        Args:
            queue_ids: current queues of the group's topics.

        Raises:
            MemberFencedError: the member must join again.
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
        """Remove a member and free its queues at once. Do nothing for an unknown member.

        Args:
            generation: that of the caller's last lease; then a replaced incarnation does not remove its successor.
        """
        with self._lock:
            membership = self._living(group)
            member = None if membership is None else membership.members.get(member_id)
            if member is not None and (generation is None or generation >= member.joined):
                self._remove(group, member_id, why="left")

    def expire(self) -> None:
        """Remove all members whose session has timed out."""
        with self._lock:
            for group in list(self._groups):
                self._living(group)

    # -- checks for commits of offsets ----------------------------------------------------------------------------

    @contextmanager
    def as_holder(self, group: str, member_id: str, *, generation: int, queues: Collection[Queue]) -> Iterator[None]:
        """Guarantee while it is entered that the member's last lease has *generation* and that it holds *queues*.

        Raises:
            GenerationStaleError: the lease is older, or the member does not hold them.
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
        """Guarantee while it is entered that the group has no live member; raise GroupActiveError if it has one."""
        with self._lock:
            membership = self._living(group)
            if membership is not None:
                raise GroupActiveError(
                    f"group {group} has {len(membership.members)} live members: only they may set its offsets",
                    group=group,
                    members=len(membership.members),
                    generation=membership.generation,
                )
            yield

    # -- state ----------------------------------------------------------------------------------------------------

    def topics(self, group: str) -> frozenset[str]:
        """Return the topics that the group's members subscribe to."""
        with self._lock:
            membership = self._groups.get(group)
            return frozenset() if membership is None else membership.topics

    def generation(self, group: str) -> int | None:
        """Return the group's current generation; None without members."""
        with self._lock:
            membership = self._living(group)
            return None if membership is None else membership.generation

    def state(self, group: str) -> GroupState | None:
        """Return the group with its members; None without members."""
        with self._lock:
            membership = self._living(group)
            return None if membership is None else membership.state(self._clock())

    def states(self) -> dict[str, GroupState]:
        """Return all groups with members, by name."""
        with self._lock:
            living = {group: self._living(group) for group in sorted(self._groups)}
            return {group: one.state(self._clock()) for group, one in living.items() if one is not None}

    # -- restart of the service -----------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return all groups, for `take_over`."""
        with self._lock:
            return {group: membership.to_json() for group in list(self._groups) if (membership := self._living(group))}

    def take_over(self, groups: dict[str, Any]) -> None:
        """Continue the groups of another process.

        Raises:
            KeyError, TypeError, ValueError: *groups* is not from `to_json`; no group is taken over.
        """
        now_s = self._clock()
        taken = {
            group: GroupMembers.from_json(content, store=self._store, now_s=now_s) for group, content in groups.items()
        }
        with self._lock:
            self._groups = taken | self._groups

    # -- internals; the caller holds the lock ---------------------------------------------------------------------

    def _begin(self, group: str, strategy: Strategy) -> GroupMembers:
        if len(self._groups) >= self._max_groups:
            raise GroupFullError(
                f"{len(self._groups)} groups have members: at most {self._max_groups} (TIDEMARK_QUERY_MAX_GROUPS)",
                limit=self._max_groups,
            )
        generation = max(self._highest, self._epoch_ms())
        membership = self._groups[group] = GroupMembers(strategy, store=self._store, generation=generation)
        return membership

    def _living(self, group: str) -> GroupMembers | None:
        """Remove members whose session has timed out; return the group, None if it has no members left."""
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

    def _note(self, group: str, membership: GroupMembers, why: str, gone: Collection[str] = ()) -> None:
        self.rebalances += 1
        _log.info(
            "group_rebalanced",
            group=group,
            generation=membership.generation,
            members=len(membership.members),
            why=why,
            gone=list(gone),
        )
