"""ElectedLeadership: the members of a group elect their writer, by a lease and a compare-and-swap in etcd."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace

import structlog

from tidemark.errors import (
    ArgumentIllegalError,
    DiskFullError,
    GroupStoreUnavailableError,
    StaleEpochError,
    StoreError,
)
from tidemark.replication.etcd.group_store import EtcdGroupStore, Seen, WriterLease
from tidemark.replication.group_state import GroupState
from tidemark.replication.known_state import KnownState
from tidemark.replication.member import Member
from tidemark.replication.member_names import name_of

from ..config import WriterSettings
from ..group_settings import ReplicationMode
from .candidacy import Candidacy, NotElectable
from .leadership import Follower, elected, first_state, min_in_sync, require_complete
from .other_members import PATIENT_S, SHORT_S, OtherMembers, is_writer

log = structlog.get_logger()

_LOOK_S = 0.3  # between two looks of a replica at the lease
_WATCH_S = 0.1  # between two looks of the writer at its lease's end
_RANK_S = 0.2  # a candidate lets each better one go ahead by this time
_TAKE_OVER_S = 5.0  # limit for the member to which the writer hands its role
_RELEASE_S = 0.02  # between two looks of the old writer at the new one's lease
_RENEWALS_A_LEASE = 4
_NOT_NOW = (GroupStoreUnavailableError, DiskFullError, OSError)  # the state is not read, or cannot be saved here


class ElectedLeadership:
    """A `Leadership` by elections.

    known       the newest state that this member has heard of
    on_renewed  called with the time until which the lease is held, seconds since the machine's start
    """

    def __init__(
        self,
        settings: WriterSettings,
        identity: str,
        known: KnownState,
        others: OtherMembers,
        group_store: EtcdGroupStore,
        *,
        on_renewed: Callable[[float], None],
    ) -> None:
        self.group_store = group_store
        self._settings = settings
        self._identity = identity
        self._others = others
        self._candidacy = Candidacy(identity, known, len(others))
        self._on_renewed = on_renewed
        self._ttl_s = settings.lease_ttl_ms / 1000
        self._lag_s = settings.replica_lag_ms / 1000
        self._elected: GroupState | None = None
        self._lease: WriterLease | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._electing = asyncio.Lock()
        self._stands_from_s = 0.0
        self._logged = ""

    # -- as a replica -----------------------------------------------------------------------------------------------

    async def begin(self, member: Member) -> GroupState | None:
        """Write if this member was elected in its last role."""
        if self._elected is None:
            await self.resign()
            return None
        state, self._elected = self._elected, None
        assert member.is_elected(state), (state, member.promised)
        return state

    async def stand(self, follower: Follower) -> None:
        """Stand for election while no member has the lease, if this member has every committed byte."""
        asked_s = 0.0
        while self._elected is None:
            await asyncio.sleep(_LOOK_S)
            seen = await self._look()
            if seen is None:
                continue
            now_s = asyncio.get_running_loop().time()
            if self._may_take(seen):
                if now_s >= self._stands_from_s:
                    await self._stand_once(follower)
            elif follower.lost_s > self._lag_s + self._ttl_s and now_s > asked_s + self._ttl_s / 2:
                asked_s = now_s
                await self._ask_to_yield(seen)

    def _may_take(self, seen: Seen) -> bool:
        """Return True if no other member has the lease, or the one that has it hands its role to this member."""
        is_appointed = seen.state is not None and seen.state.writer == self._identity
        return seen.holder in (None, self._identity) or is_appointed

    async def _look(self) -> Seen | None:
        try:
            seen = await asyncio.to_thread(self.group_store.look)
        except _NOT_NOW as error:
            self._log_once("group_store_not_read", error=str(error))
            return None
        return seen

    def _log_once(self, event: str, **facts: object) -> None:
        if self._logged != f"{event} {facts}":
            self._logged = f"{event} {facts}"
            log.warning(event, **facts)

    async def _stand_once(self, follower: Follower) -> None:
        answers = await self._others.ask(SHORT_S)
        seen = await self._look()  # after the answers: etcd then has everything that the members have heard of
        if seen is None or not self._may_take(seen):
            return
        state = self._candidacy.state_to_replace(seen.state, answers, follower)
        if isinstance(state, NotElectable):
            self._log_once(state.reason, **state.facts)
            return
        if seen.holder is None and (rank := self._candidacy.rank(state, answers, follower)):
            await asyncio.sleep(rank * _RANK_S)
        try:
            await self._elect(state, seen.holder, epoch=state.epoch + 1)
        except _NOT_NOW as error:  # if it was carried out, the next look shows that
            self._log_once("not_elected", error=str(error))

    async def _elect(self, state: GroupState, holder: str | None, *, epoch: int) -> int | None:
        """Let this member take the lease in *epoch*, after *state*; return its number, None if another was faster."""
        async with self._electing:
            if self._elected is not None:
                return self._elected.epoch
            wanted = elected(self._settings, state, self._identity, epoch)
            taken = await asyncio.to_thread(self.group_store.elect, wanted, holder=holder)
            if taken is None:
                return None
            self._elected, self._lease = taken
            self._keeping = asyncio.create_task(self._keep(self._lease))
            log.info("elected", epoch=self._elected.epoch, in_sync=[self._settings.member])
            return self._elected.epoch

    async def _ask_to_yield(self, seen: Seen) -> None:
        """Ask a writer to yield that reaches etcd, but not this member nor enough others to commit."""
        state = seen.state
        is_sync = self._settings.replication is ReplicationMode.SYNC
        if state is None or not is_sync or not state.can_elect(self._identity):
            return
        cut = [one for one in await self._others.ask(SHORT_S) if not is_writer(one) and not one.follows_writer]
        if 1 + len(cut) >= min_in_sync(self._settings):
            with contextlib.suppress(GroupStoreUnavailableError):
                await asyncio.to_thread(self.group_store.ask_to_yield, state.epoch)
                log.warning("writer_asked_to_yield", epoch=state.epoch, writer=name_of(seen.holder or ""))

    async def promote(self, follower: Follower, stopped_writer: str, *, unclean: bool) -> int:
        """Take the role if no member has the lease: for the first election, or with the loss of messages accepted."""
        answers = await self._others.ask(PATIENT_S)
        seen = await asyncio.to_thread(self.group_store.look)
        self._require_free(seen)
        newest, newest_epoch = self._candidacy.newest(answers, follower)
        state = newest or first_state(self._identity)
        require_complete(state, self._identity, unclean=unclean)
        revision = 0 if seen.state is None else seen.state.revision
        epoch = await self._elect(replace(state, revision=revision), seen.holder, epoch=newest_epoch + 1)
        if epoch is None:
            self._require_free(await asyncio.to_thread(self.group_store.look))
            raise ArgumentIllegalError("the group's state has changed meanwhile: try again", argument="member")
        return epoch

    def _require_free(self, seen: Seen) -> None:
        if seen.holder not in (None, self._identity):
            raise ArgumentIllegalError(
                f"member {name_of(seen.holder or '')} has the writer's lease: use hand-over; after its loss, members "
                f"elect another one within {self._ttl_s:g} s",
                argument="member",
            )

    async def take_over(self) -> None:
        """Stand at once, until the role is taken by any member."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + _TAKE_OVER_S
        while loop.time() < deadline_s:
            seen = await self._look()
            if seen is not None and seen.state is not None:
                may_take = self._may_take(seen) and seen.state.can_elect(self._identity)
                if not may_take or await self._elect(seen.state, seen.holder, epoch=seen.state.epoch + 1) is not None:
                    return
            await asyncio.sleep(_WATCH_S)

    # -- as the writer ----------------------------------------------------------------------------------------------

    async def _keep(self, lease: WriterLease) -> None:
        """Renew the lease until it is lost."""
        while True:
            await asyncio.sleep(self._ttl_s / _RENEWALS_A_LEASE)
            try:
                await asyncio.to_thread(lease.renew)
                self._on_renewed(lease.valid_until_s)
            except StaleEpochError:
                return  # `watch` finds that it does not remain
            except GroupStoreUnavailableError as error:
                log.warning("lease_not_renewed", remaining_s=round(lease.remaining_s, 1), error=error.message)

    async def watch(self, has_enough: Callable[[], bool]) -> StoreError:
        """Stop when the lease may have run out, or the replicas that this writer does not reach ask for that."""
        lease = self._lease
        assert lease is not None
        yielding = asyncio.create_task(self._until_asked_to_yield(lease.epoch, has_enough))
        try:
            while lease.remaining_s > 0:
                if yielding.done():
                    yielding.result()
                    return StaleEpochError(
                        f"the writer of epoch {lease.epoch} does not reach its replicas, which reach each other",
                        epoch=lease.epoch,
                    )
                await asyncio.sleep(_WATCH_S)
        finally:
            yielding.cancel()
        return StaleEpochError(
            f"the lease of the writer of epoch {lease.epoch} was not renewed for {self._ttl_s:g} s, so that this "
            "member stops writing",
            epoch=lease.epoch,
        )

    async def _until_asked_to_yield(self, epoch: int, has_enough: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        alone_since_s = loop.time()
        while True:
            await asyncio.sleep(_LOOK_S)
            if has_enough() or not self._settings.yield_when_alone:
                alone_since_s = loop.time()
            elif loop.time() > alone_since_s + 2 * self._lag_s:
                seen = await self._look()
                if seen is not None and seen.asked_epoch == epoch:
                    self._stands_from_s = loop.time() + 2 * self._ttl_s
                    return

    @property
    def valid_until_s(self) -> float | None:
        """Time until which this member has the writer's lease, seconds since the machine's start."""
        return 0.0 if self._lease is None else self._lease.valid_until_s

    async def release_to(self, identity: str) -> None:
        """Keep the lease until *identity* replaces this member as its holder, or cannot, or `_TAKE_OVER_S` are over."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + _TAKE_OVER_S
        while loop.time() < deadline_s:
            seen = await self._look()
            if seen is not None and (seen.holder != self._identity or not _can_elect(seen, identity)):
                break
            await asyncio.sleep(_RELEASE_S)
        await self.resign()

    async def resign(self) -> None:
        """Revoke the lease. If etcd does not answer, it runs out."""
        if self._keeping is not None:
            self._keeping.cancel()
            self._keeping = None
        if self._lease is not None:
            lease, self._lease, self._elected = self._lease, None, None
            try:
                await asyncio.to_thread(lease.revoke)
            except GroupStoreUnavailableError as error:
                log.warning("lease_not_revoked", error=error.message)


def _can_elect(seen: Seen, identity: str) -> bool:
    return seen.state is not None and seen.state.can_elect(identity)
