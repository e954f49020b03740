"""Promotion: makes this member the group's writer, by an operator's order or the old writer's."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Protocol

from tidemark.errors import ArgumentIllegalError, StoreError
from tidemark.replication.group_state import GroupState
from tidemark.replication.group_store import ManualGroupStore, promoted_epoch
from tidemark.replication.stored_state import decode_state

from ..config import WriterSettings
from ..group_settings import ReplicationMode
from .member_names import name_of

_GROUP_BYTES = 8


class Described(Protocol):
    """A part of a member's description. state: JSON, empty for none; role: 1 for the writer."""

    @property
    def promised_epoch(self) -> int: ...

    @property
    def state(self) -> bytes: ...
    @property
    def role(self) -> int: ...
    @property
    def member(self) -> str: ...


Describe = Callable[[str], Coroutine[Any, Any, Described]]
_WRITER = 1


async def ask_others(settings: WriterSettings, describe: Describe) -> list[Described]:
    """Return the descriptions of the other members that answer. describe: asks the member at an address."""
    answers = await asyncio.gather(*map(describe, settings.other_members.values()), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, StoreError):
            raise answer
    return [answer for answer in answers if not isinstance(answer, BaseException)]


def state_in(described: Described) -> GroupState | None:
    """Return the group's state as that member knows it; None if it knows none."""
    return decode_state(described.state) if described.state else None


class Promotion:
    """The choice of the state in which this member is the writer. describe: asks the member at an address."""

    def __init__(
        self, settings: WriterSettings, identity: str, group_store: ManualGroupStore, describe: Describe
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._group_store = group_store
        self._describe = describe

    async def state(self, stopped_writer: str, *, unclean: bool) -> GroupState:
        """Return the state to begin with, after a look at all members that answer.

        Raises ArgumentIllegalError (fact: argument) if another writer runs, another one was stopped, or this member may
        lack committed bytes.
        """
        newest = self._group_store.read()
        for described in await ask_others(self._settings, self._describe):
            if described.role == _WRITER:
                raise ArgumentIllegalError(
                    f"member {described.member} is the writer and answers: stop it, or use hand-over", argument="member"
                )
            state = state_in(described)
            if state is not None and (newest is None or newest.age < state.age):
                newest = state
        if newest is None:
            return self._first()
        writer = "" if newest.writer is None else name_of(newest.writer)
        if writer not in ("", self._settings.member, stopped_writer):
            raise ArgumentIllegalError(
                f"the writer of epoch {newest.epoch} is {writer}: stop it, and confirm that by its name",
                argument="stopped_writer",
            )
        if not newest.can_elect(self._identity) and not unclean:
            raise ArgumentIllegalError(
                f"member {self._settings.member} may lack committed messages: promote one of "
                f"{', '.join(sorted(map(name_of, newest.in_sync | newest.eligible)))}, or accept the loss (unclean)",
                argument="unclean",
            )
        return self.elected(newest)

    def _first(self) -> GroupState:
        group = secrets.token_hex(_GROUP_BYTES)
        return self.elected(GroupState(0, 0, None, frozenset({self._identity}), frozenset(), 1, group))

    def elected(self, state: GroupState) -> GroupState:
        """Return *state* with this member as the writer of a new epoch."""
        is_complete = state.can_elect(self._identity)
        settled = replace(state, min_in_sync=min_in_sync(self._settings))
        elected = settled.elected(self._identity, epoch=promoted_epoch(state.epoch))
        return elected if is_complete else replace(elected, eligible=frozenset())

    def take(self, state: GroupState) -> None:
        """Store *state*, with which this member begins as the writer. Raises OSError."""
        self._group_store.adopt(replace(state, revision=state.revision + 1))


def min_in_sync(settings: WriterSettings) -> int:
    """Return the least number of members that must have a byte before it is committed."""
    return settings.min_in_sync if settings.replication is ReplicationMode.SYNC else 1
