"""ReplicaServer: the process while its member follows another one."""

from __future__ import annotations

import asyncio
from functools import partial

import structlog

from tidemark.access.guard import Guard
from tidemark.errors import DiskFullError, StoreError
from tidemark.replication.member import Member
from tidemark.replication.member_files import MemberFiles
from tidemark.tls.reloading import Reloading
from tidemark.v1 import replication_pb2_grpc

from .batch.record_encoder import warm_up
from .composition import compose_retention
from .config import WriterSettings
from .group import Group
from .log.open_store import OpenStore, release_store
from .log.queue_offsets import save_snapshot
from .log.recovery import recovered_snapshot
from .replication.log_repair import LogRepair
from .replication.replica import Replica
from .replication.replica_disk import ReplicaDisk
from .rpc.member_channel import open_stream
from .rpc.member_server import COMMIT_LOG, REPLICATION, TOPICS, GrpcServer
from .rpc.not_leader_interceptor import NotLeaderInterceptor
from .rpc.refused_services import add_refused_services
from .rpc.replication_service import ReplicaReplicationService

log = structlog.get_logger()

_GRACE_S = 0.2  # for answers under way: calls that come now would hold up the next role


class ReplicaServer:
    """The gRPC server of a replica with its open store, which it closes at the end. Create it on the event loop.

    Raises RuntimeError if the address cannot be bound.

    stopping: set it to end `run`
    """

    def __init__(
        self,
        settings: WriterSettings,
        store: OpenStore,
        files: MemberFiles,
        member: Member,
        group: Group,
        repair: LogRepair,
        tls: Reloading | None,
        guard: Guard,
        stopping: asyncio.Event,
    ) -> None:
        warm_up()  # before the bind; the writer's role, in which clients wait, then begins without it
        self._settings = settings
        self._store = store
        self._stopping = stopping
        self._repair = repair
        self._known, self._leadership = group.known, group.leadership
        credentials = settings.member_credentials(settings.tls_cert, settings.tls_key)
        self._disk = ReplicaDisk(store, files, member, group.known, on_cut=group.metrics.note_cut)
        self._replica = Replica(
            settings,
            self._disk,
            store.segments.size,
            self._group_name,
            group.others.find_writer,
            partial(open_stream, credentials=credentials),
        )
        self._failure: StoreError | None = None
        self._loop = asyncio.get_running_loop()
        self._retention = compose_retention(
            settings,
            store,
            ask_for_snapshot=lambda: None,  # the writer sends its queue offsets
            on_deleted=lambda: None,
            on_failure=self.fail,
            needed=lambda: self._replica.needed,
        )
        service = ReplicaReplicationService(
            settings, self._replica, self._disk, group.known.read, self._promote, repair.member_log
        )
        names = (COMMIT_LOG, TOPICS, REPLICATION)
        refusing = NotLeaderInterceptor((COMMIT_LOG, TOPICS), service.refuse)
        self._grpc = GrpcServer(settings, tls, guard, names, (refusing,))
        self.port = self._grpc.port
        add_refused_services(self._grpc.server)
        replication_pb2_grpc.add_ReplicationServiceServicer_to_server(  # type: ignore[no-untyped-call, unused-ignore]
            service, self._grpc.server
        )
        self._grpc.add_health()

    def _group_name(self) -> str:
        state = self._known.read()
        return "" if state is None else state.group

    async def _promote(self, stopped_writer: str, unclean: bool) -> int:
        epoch = await self._leadership.promote(self._replica, stopped_writer, unclean=unclean)
        self._stopping.set()
        return epoch

    def fail(self, error: StoreError) -> None:
        """End the process with *error*, of the retention, whose thread calls this, or of the repair."""
        self._failure = error
        self._loop.call_soon_threadsafe(self._stopping.set)

    async def run(self) -> StoreError | None:
        """Serve until `stopping` is set, or this member becomes the writer. Return the error that ended the copy."""
        recovered = self._store.recovered
        snapshot = recovered_snapshot(recovered)
        try:
            save_snapshot(self._store.snapshot_path, snapshot, self._store.storage)  # the next start reads from there
        except DiskFullError as error:
            log.warning("snapshot_not_saved", error=error.message)
        await self._grpc.report(("", REPLICATION))
        await self._grpc.server.start()
        log.info("replica_started", address=self._grpc.address, port=self.port, end=recovered.end)
        self._retention.start()
        self._repair.start(self.fail)
        following = asyncio.create_task(self._replica.run())
        standing = asyncio.create_task(self._leadership.stand(self._replica))
        stopped = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((following, standing, stopped), return_when=asyncio.FIRST_COMPLETED)
        try:
            return await self._outcome(following, standing)
        finally:
            stopped.cancel()
            await self._repair.stop()
            await asyncio.to_thread(self._retention.close)
            await self._grpc.report(())
            await self._grpc.server.stop(_GRACE_S)
            await self._replica.close()
            release_store(self._store)
            log.info("replica_stopped", end=self._disk.member.end, committed_offset=self._disk.member.confirm)

    async def _outcome(self, following: asyncio.Task[None], standing: asyncio.Task[None]) -> StoreError | None:
        """Return the error with which the copy ended; None if it was stopped, or this member takes over."""
        has_ended, is_elected = following.done(), standing.done()
        following.cancel()
        standing.cancel()
        await asyncio.wait((following, standing))
        if is_elected:
            standing.result()  # raises what has ended it
        if not has_ended:
            return self._failure
        failure = following.exception()
        if failure is None:
            await self._leadership.take_over()
            return None
        if not isinstance(failure, StoreError):
            raise failure
        return failure
