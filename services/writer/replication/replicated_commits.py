"""ReplicatedCommits: commits written groups once every member in sync has synced them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from tidemark.replication.group_state import GroupState
from tidemark.replication.in_sync_set import InSyncSet

from ..log.flusher import WrittenGroup

Commit = Callable[[int, list[WrittenGroup]], None]
"""Receives the committed end, and the groups that are committed with it; their order is that of the log."""


class ReplicatedCommits:
    """The groups of one writer's epoch that are not committed yet. Thread-safe.

    members  of this epoch; no other object changes them
    writer   identity of this member
    commit   called under a lock, by the thread whose call has moved the committed end
    """

    def __init__(self, members: InSyncSet, writer: str, commit: Commit) -> None:
        self._lock = threading.Lock()  # guards the members and the groups, and keeps the commits in order
        self._members = members
        self._writer = writer
        self._commit = commit
        self._groups: deque[WrittenGroup] = deque()

    @property
    def known(self) -> GroupState:
        """The newest state that the group store has shown."""
        return self._members.known

    @property
    def pending(self) -> GroupState | None:
        """A proposed state whose outcome is not known; None if there is none."""
        return self._members.pending

    @property
    def waited_for(self) -> frozenset[str]:
        """The members that must have synced a byte before it is committed."""
        with self._lock:
            return self._members.waited_for

    def synced_end(self, member: str) -> int:
        """Return the physical offset below which *member* has synced everything; 0 if it has not acknowledged."""
        return self._members.synced_end(member)

    @property
    def has_enough(self) -> bool:
        """True if appends may be accepted: enough members are in sync."""
        return self._members.has_enough

    @property
    def committed(self) -> int:
        """Physical offset below which every byte is committed."""
        return self._members.committed

    def flushed(self, written: WrittenGroup) -> None:
        """Note that this member has synced *written*, and everything before it."""
        with self._lock:
            self._groups.append(written)
            self._acknowledge(self._writer, written.end)

    def acknowledged(self, member: str, end: int) -> None:
        """Note that *member* has synced everything below physical offset *end*."""
        with self._lock:
            self._acknowledge(member, end)

    def add(self, member: str, *, epoch_start: int) -> GroupState | None:
        """Return the state to propose, with *member*; None if it lacks something, or another change is pending."""
        with self._lock:
            may_join = self._members.may_join(member, epoch_start=epoch_start)
            return self._members.add(member) if may_join else None

    def remove(self, member: str) -> GroupState | None:
        """Return the state to propose, without *member*; None if another change is pending, or there is no change."""
        with self._lock:
            return self._members.remove(member)

    def learn(self, state: GroupState) -> None:
        """Note a state of the group store.

        Raises:
            StaleEpochError: another epoch has begun, so this writer must stop.
        """
        with self._lock:
            self._members.learn(state)
            self._move()

    def _acknowledge(self, member: str, end: int) -> None:
        self._members.acknowledge(member, end)
        self._move()

    def _move(self) -> None:
        before, end = self._members.committed, self._members.commit()
        committed: list[WrittenGroup] = []
        while self._groups and self._groups[0].end <= end:
            committed.append(self._groups.popleft())
        if committed or end > before:
            self._commit(end, committed)
