"""GroupMember: the process of a member of a replication group, in one role after the other.

Each role opens the store by recovery, and closes it at its end. So a promotion is a start like any other: the whole log
is kept, and queue offsets and recent batches are found again from it.
"""

from __future__ import annotations

import asyncio

import structlog
from prometheus_client import CollectorRegistry

from tidemark.access.guard import Guard
from tidemark.errors import StaleEpochError, StoreError
from tidemark.replication.group_state import GroupState
from tidemark.replication.member import Member
from tidemark.replication.member_files import MemberFiles
from tidemark.replication.member_names import identity_of
from tidemark.replication.member_role import PublishedRole
from tidemark.store.storage import DiskStorage
from tidemark.tls.reloading import Reloading

from .composition import GroupRole, open_log_again
from .config import WriterSettings
from .group import Group, open_group
from .log.open_store import OpenStore, open_store, release_store
from .replica_server import ReplicaServer
from .replication.log_repair import LogRepair
from .replication.member_log import MemberLog
from .rpc.other_logs import OtherLogs
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
        self._group: Group | None = None

    async def run(self) -> StoreError | None:
        """Serve until a stop is asked for; return the failure that ended the process, None after a clean stop."""
        try:
            while True:
                store = await asyncio.to_thread(open_store, self._settings, DiskStorage())
                failure = await self._serve(store)
                if self._stop.is_asked_for or not (failure is None or isinstance(failure, StaleEpochError)):
                    return failure
        finally:
            if self._group is not None:
                await self._group.leadership.resign()  # if it was elected, and has not begun
                self._group.role.close()

    async def _serve(self, store: OpenStore) -> StoreError | None:
        """Serve in the role that the group's state gives to this member, until the role ends."""
        files = MemberFiles(store.paths.replication, store.storage)
        member = Member(
            identity_of(self._settings.member, files.identity()),
            end=store.recovered.end,
            confirm=store.checkpoint.committed_offset,
            promised=files.promised(),
            epochs=files.epochs(),
        )
        group = self._group or self._open_group(store, files, member)  # once the store's lock is held
        state = await group.leadership.begin(member)
        repair = self._make_repair(store, group)
        try:
            if state is not None:
                return await self._write(store, files, member, repair, state)
            return await self._follow(store, files, member, repair)
        finally:
            repair.member_log.close()

    def _make_repair(self, store: OpenStore, group: Group) -> LogRepair:
        settings = self._settings
        credentials = settings.member_credentials(settings.tls_cert, settings.tls_key)
        return LogRepair(
            settings,
            store.paths,
            store.storage,
            store.segments,
            MemberLog(open_log_again(store), lambda: store.checkpoint.committed_offset),
            OtherLogs(settings.other_members, credentials),
            group.metrics,
        )

    def _open_group(self, store: OpenStore, files: MemberFiles, member: Member) -> Group:
        role = PublishedRole(store.paths.replication, store.storage)
        group = self._group = open_group(self._settings, member.identity, files, role)
        self._registry.register(group.metrics)
        return group

    async def _write(
        self, store: OpenStore, files: MemberFiles, member: Member, repair: LogRepair, state: GroupState
    ) -> StoreError | None:
        leadership = self._opened.leadership
        role = GroupRole(member, repair, state, leadership.group_store, leadership.release_to, self._stop.end_role)
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
        self._opened.metrics.writer = server.parts.replication
        self._opened.role.write(state.epoch, member.epoch_start, until_s=leadership.valid_until_s)
        try:
            await server.start()
            log.info("epoch_begun", epoch=state.epoch, start=member.epoch_start, confirm_offset=member.confirm)
            watching = asyncio.create_task(self._watch(server))
            failure = await server.run()
            watching.cancel()
        finally:
            self._opened.role.follow()
            self._opened.metrics.writer = None
            self._registry.unregister(server.metrics)
            await leadership.resign()
        if isinstance(failure, StaleEpochError):  # so that this member does not write again before it follows
            files.promise(int(failure.facts.get("newer_epoch") or state.epoch))
        return failure

    async def _watch(self, server: WriterServer) -> None:
        replication = server.parts.replication
        assert replication is not None
        reason = await self._opened.leadership.watch(lambda: replication.has_enough)
        if not replication.is_handing_over:
            server.parts.commit_log.fail(reason)

    async def _follow(
        self, store: OpenStore, files: MemberFiles, member: Member, repair: LogRepair
    ) -> StoreError | None:
        try:
            server = ReplicaServer(
                self._settings,
                store,
                files,
                member,
                self._opened,
                repair,
                self._tls,
                self._guard,
                self._stop.next_role(),
            )
        except BaseException:
            release_store(store)
            raise
        self._keep(server.port)
        return await server.run()

    @property
    def _opened(self) -> Group:
        assert self._group is not None
        return self._group

    def _keep(self, port: int) -> None:
        """Listen on *port* in later roles, too."""
        host = self._settings.writer_listen.rpartition(":")[0]
        self._settings = self._settings.model_copy(update={"writer_listen": f"{host}:{port}"})
