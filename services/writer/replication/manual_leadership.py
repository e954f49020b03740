"""ManualLeadership: an operator decides who writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import structlog

from tidemark.errors import ArgumentIllegalError, StoreError
from tidemark.replication.group_state import GroupState
from tidemark.replication.group_store import ManualGroupStore, promoted_epoch, restarted_epoch
from tidemark.replication.known_state import KnownState
from tidemark.replication.member import Member
from tidemark.replication.member_names import name_of

from ..config import WriterSettings
from .leadership import Follower, elected, first_state, require_complete
from .other_members import PATIENT_S, OtherMembers, is_writer, newest_state

log = structlog.get_logger()


class ManualLeadership:
    """A `Leadership` whose state each member keeps in a file; see `ManualGroupStore`."""

    def __init__(self, settings: WriterSettings, identity: str, known: KnownState, others: OtherMembers) -> None:
        self.group_store = ManualGroupStore(known)
        self._settings = settings
        self._identity = identity
        self._known = known
        self._others = others

    @property
    def valid_until_s(self) -> None:
        """None: there is no lease."""
        return None

    async def begin(self, member: Member) -> GroupState | None:
        """Write if the state names this member and no other member knows of a later epoch; after a restart, anew."""
        state = self._known.read()
        if state is None or state.writer != self._identity or member.promised > state.epoch:
            return None
        if await self._has_successor(state):
            return None
        if member.is_elected(state):
            return state
        epoch = restarted_epoch(state.epoch)
        return await asyncio.to_thread(self.group_store.propose, elected(self._settings, state, self._identity, epoch))

    async def _has_successor(self, state: GroupState) -> bool:
        for answer in await self._others.ask(PATIENT_S):
            known = newest_state(None, [answer])
            if max(answer.promised_epoch, 0 if known is None else known.epoch) > state.epoch:
                log.warning("later_epoch_found", member=answer.member, epoch=answer.promised_epoch)
                return True
        return False

    async def stand(self, follower: Follower) -> None:
        """Never return: there are no elections."""
        await asyncio.Event().wait()

    async def promote(self, follower: Follower, stopped_writer: str, *, unclean: bool) -> int:
        """Take the role after a look at all members that answer."""
        answers = await self._others.ask(PATIENT_S)
        running = next((answer for answer in answers if is_writer(answer)), None)
        if running is not None:
            raise ArgumentIllegalError(
                f"member {running.member} is the writer and answers: stop it, or use hand-over", argument="member"
            )
        newest = newest_state(self._known.read(), answers)
        if newest is None:
            return await self._take(first_state(self._identity))
        writer = "" if newest.writer is None else name_of(newest.writer)
        if writer not in ("", self._settings.member, stopped_writer):
            raise ArgumentIllegalError(
                f"the writer of epoch {newest.epoch} is {writer}: stop it, and confirm that by its name",
                argument="stopped_writer",
            )
        require_complete(newest, self._identity, unclean=unclean)
        return await self._take(newest)

    async def _take(self, state: GroupState) -> int:
        """Save the state in which this member writes, before its role ends: the next one begins with it."""
        taken = elected(self._settings, state, self._identity, promoted_epoch(state.epoch))
        await asyncio.to_thread(self._known.adopt, replace(taken, revision=taken.revision + 1))
        return taken.epoch

    async def take_over(self) -> None:
        """Take the role in the state that the last writer has sent."""
        state = self._known.read()
        assert state is not None, "the writer has sent the state in which it names this member"
        await self._take(state)

    async def watch(self, has_enough: Callable[[], bool]) -> StoreError:
        """Never return."""
        await asyncio.Event().wait()
        raise AssertionError

    async def release_to(self, identity: str) -> None:
        """Do nothing: no other member takes the role by itself."""

    async def resign(self) -> None:
        """Do nothing: the state names the next writer, or an operator will."""
