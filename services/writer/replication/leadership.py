"""Leadership: how a member of a group becomes its writer, and how it ceases to be that."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from tidemark.errors import ArgumentIllegalError, StoreError
from tidemark.replication.group_state import GroupState
from tidemark.replication.group_store import GroupStore
from tidemark.replication.member import Member
from tidemark.replication.member_names import name_of

from ..config import WriterSettings
from ..group_settings import ReplicationMode

_GROUP_BYTES = 8


class Follower(Protocol):
    """This member as a replica."""

    @property
    def log_end(self) -> int:
        """Physical offset of the log's end."""

    @property
    def promised(self) -> int:
        """The greatest epoch that this member has promised."""

    @property
    def lost_s(self) -> float:
        """Seconds since the stream from a writer ended; 0 while there is one."""


class Leadership(Protocol):
    """The roles of one member, whose process has one after the other. Lives on the event loop.

    All methods raise GroupStoreUnavailableError if the group's store does not answer.
    """

    @property
    def group_store(self) -> GroupStore:
        """Where the writer changes the group's state."""

    @property
    def valid_until_s(self) -> float | None:
        """Time until which this member is the writer unless that is extended, seconds since the machine's start.

        None: there is no such time.
        """

    async def begin(self, member: Member) -> GroupState | None:
        """Return the state in which *member* is the writer of a new epoch; None if it follows another one."""

    async def stand(self, follower: Follower) -> None:
        """Return once this member has been elected while it was a replica."""

    async def promote(self, follower: Follower, stopped_writer: str, *, unclean: bool) -> int:
        """Make this replica the writer, by an operator's order; return its epoch.

        Raises ArgumentIllegalError (fact: argument) if another writer runs or was stopped, or if this member may lack
        committed bytes.
        """

    async def take_over(self) -> None:
        """Make this replica the writer if no other member has become it: the last one hands its role to it."""

    async def watch(self, has_enough: Callable[[], bool]) -> StoreError:
        """As the writer: return once this member must stop writing, with the reason.

        has_enough: True if enough members are in sync.
        """

    async def release_to(self, identity: str) -> None:
        """Give up the role of the writer once *identity*, which the state names, has taken it, or a few seconds later.

        No other member can take it before.
        """

    async def resign(self) -> None:
        """Give up the role of the writer, so that another member can take it at once."""


def first_state(identity: str) -> GroupState:
    """Return the state of a new group, before its first epoch."""
    group = secrets.token_hex(_GROUP_BYTES)
    return GroupState(0, 0, None, frozenset({identity}), frozenset(), 1, group)


def elected(settings: WriterSettings, state: GroupState, identity: str, epoch: int) -> GroupState:
    """Return *state* with *identity* as the writer of *epoch*. The other members may lack what only it has."""
    is_complete = state.can_elect(identity)
    settled = replace(state, min_in_sync=min_in_sync(settings)).elected(identity, epoch=epoch)
    return settled if is_complete else replace(settled, eligible=frozenset())


def require_complete(state: GroupState, identity: str, *, unclean: bool) -> None:
    """Raise ArgumentIllegalError if *identity* may lack committed bytes, and this is not accepted."""
    if not state.can_elect(identity) and not unclean:
        raise ArgumentIllegalError(
            f"member {name_of(identity)} may lack committed messages: promote one of "
            f"{', '.join(sorted(map(name_of, state.in_sync | state.eligible)))}, or accept the loss (unclean)",
            argument="unclean",
        )


def min_in_sync(settings: WriterSettings) -> int:
    """Return the least number of members that must have a byte before it is committed."""
    return settings.min_in_sync if settings.replication is ReplicationMode.SYNC else 1
