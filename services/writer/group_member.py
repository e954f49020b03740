"""GroupMember: the process of a member of a replication group, in one role after the other.

Each role opens the store by recovery, and closes it at its end. So a promotion is a start like any other: the whole log
is kept, and queue offsets and recent batches are found again from it.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import structlog
from prometheus_client import CollectorRegistry

from tidemark.access.guard import Guard
from tidemark.errors import StaleEpochError, StoreError
from tidemark.replication.group_state import GroupState
from tidemark.replication.group_store import ManualGroupStore, restarted_epoch
from tidemark.replication.member import Member
from tidemark.replication.member_files import MemberFiles
from tidemark.store.storage import DiskStorage
from tidemark.tls.reloading import Reloading

from .composition import GroupRole
from .config import WriterSettings
from .log.open_store import OpenStore, open_store, release_store
from .replica_server import ReplicaServer
from .replication.member_names import identity_of
from .replication.promotion import ask_others, min_in_sync, state_in
from .rpc.member_channel import describe
from .server import WriterServer
from .stop_request import StopRequest

log = structlog.get_logger()


class GroupMember:
    """The process. registry: of the metrics, to which each role adds its own."""

    def __init__(
        self,
        settings: WriterSettings,
        tls: Reloading | None,
        guard: Guard,
        stop: StopRequest,
        registry: CollectorRegistry,
    ) -> None:
        self._settings = settings
        self._tls = tls
        self._guard = guard
        self._stop = stop
        self._registry = registry

    async def run(self) -> StoreError | None:
        """Serve until a stop is asked for; return the failure that ended the process, None after a clean stop."""
        while True:
            store = await asyncio.to_thread(open_store, self._settings, DiskStorage())
            failure = await self._serve(store)
            if self._stop.is_asked_for or not (failure is None or isinstance(failure, StaleEpochError)):
                return failure

    async def _serve(self, store: OpenStore) -> StoreError | None:
        """Serve in the role that the group's state gives to this member, until the role ends."""
        files = MemberFiles(store.paths.replication, store.storage)
        group_store = ManualGroupStore(files)
        member = Member(
            identity_of(self._settings.member, files.identity()),
            end=store.recovered.end,
            confirm=store.checkpoint.committed_offset,
            promised=files.promised(),
            epochs=files.epochs(),
        )
        state = group_store.read()
        is_writer = state is not None and state.writer == member.identity and member.promised <= state.epoch
        if state is not None and is_writer and not await self._has_successor(state):
            return await self._write(store, files, group_store, member, self._begun(state, member, group_store))
        return await self._follow(store, files, member)

    async def _has_successor(self, state: GroupState) -> bool:
        """Return True if a member knows of a later epoch than *state*."""
        credentials = self._settings.member_credentials(self._settings.tls_cert, self._settings.tls_key)
        for answer in await ask_others(self._settings, partial(describe, credentials=credentials)):
            known = state_in(answer)
            if max(answer.promised_epoch, 0 if known is None else known.epoch) > state.epoch:
                log.warning("later_epoch_found", member=answer.member, epoch=answer.promised_epoch)
                return True
        return False

    def _begun(self, state: GroupState, member: Member, group_store: ManualGroupStore) -> GroupState:
        """Return the state in which this member writes: *state* after a promotion, otherwise with the next epoch."""
        if member.is_elected(state):
            return state
        elected = replace(state, min_in_sync=min_in_sync(self._settings)).elected(
            member.identity, epoch=restarted_epoch(state.epoch)
        )
        return group_store.propose(elected)

    async def _write(
        self,
        store: OpenStore,
        files: MemberFiles,
        group_store: ManualGroupStore,
        member: Member,
        state: GroupState,
    ) -> StoreError | None:
        role = GroupRole(member, state, group_store, self._stop.end_role)
        try:
            server = WriterServer(self._settings, store, self._tls, self._guard, self._stop.next_role(), role)
            files.promise(state.epoch)
            files.save_epochs(member.epochs)  # before the first byte of the epoch
            await server.bind_remoting()
        except BaseException:
            release_store(store)
            raise
        self._keep(server.port)
        self._registry.register(server.metrics)
        try:
            await server.start()
            log.info("epoch_begun", epoch=state.epoch, start=member.epoch_start, confirm_offset=member.confirm)
            failure = await server.run()
        finally:
            self._registry.unregister(server.metrics)
        if isinstance(failure, StaleEpochError):  # so that this member does not write again before it follows
            files.promise(int(failure.facts.get("newer_epoch") or state.epoch))
        return failure

    async def _follow(self, store: OpenStore, files: MemberFiles, member: Member) -> StoreError | None:
        try:
            server = ReplicaServer(self._settings, store, files, member, self._tls, self._guard, self._stop.next_role())
        except BaseException:
            release_store(store)
            raise
        self._keep(server.port)
        return await server.run()

    def _keep(self, port: int) -> None:
        """Listen on *port* in later roles, too."""
        host = self._settings.writer_listen.rpartition(":")[0]
        self._settings = self._settings.model_copy(update={"writer_listen": f"{host}:{port}"})
