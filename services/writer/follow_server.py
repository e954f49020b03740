"""FollowServer: the process while its store follows a RocketMQ broker."""

from __future__ import annotations

import asyncio
from typing import NoReturn

import structlog

from tidemark.access.guard import Guard
from tidemark.errors import NotLeaderError, StoreContradictionError, StoreError
from tidemark.store.multi_path_mapped_file_queue import log_size_on_disk
from tidemark.tls.reloading import Reloading

from .composition import compose_retention
from .config import WriterSettings
from .follow.broker import find_broker
from .follow.broker_calls import BrokerCalls
from .follow.follow_metrics import FollowMetrics
from .follow.follower import Follower
from .follow.follower_disk import FollowerDisk
from .follow_settings import BrokerUrl
from .log.open_store import OpenStore
from .rpc.member_server import COMMIT_LOG, TOPICS, GrpcServer
from .rpc.not_leader_interceptor import NotLeaderInterceptor
from .rpc.refused_services import add_refused_services

log = structlog.get_logger()

_GRACE_S = 0.2  # for refusals under way


async def with_broker_sizes(settings: WriterSettings, url: BrokerUrl) -> WriterSettings:
    """Return *settings* with the file size of the broker's log, if the store has no log yet.

    Raises BrokerUnreachableError; StoreContradictionError, also if the setting was given and differs.
    """
    if log_size_on_disk(settings.log_folders(settings.store_root.resolve())) is not None:
        return settings
    broker = await find_broker(url, BrokerCalls(settings.follow_access_key, settings.follow_secret_key_file))
    name, size = "commit_log_segment_size_bytes", broker.log_file_bytes
    if name in settings.model_fields_set and settings.commit_log_segment_size_bytes != size:
        raise StoreContradictionError(
            f"{name} is {settings.commit_log_segment_size_bytes}, but the files of the broker's log have {size} bytes: "
            "remove the setting or set it to that size",
            setting=name,
        )
    return settings.model_copy(update={name: size})


class FollowServer:
    """The gRPC server, which refuses appends, and the copy of the broker's log into the open *store*.

    Create it on the event loop. Raises RuntimeError if the address cannot be bound.

    stopping: set it to end `run`
    """

    def __init__(
        self,
        settings: WriterSettings,
        url: BrokerUrl,
        store: OpenStore,
        tls: Reloading | None,
        guard: Guard,
        stopping: asyncio.Event,
    ) -> None:
        self._url = url
        self._stopping = stopping
        self._disk = FollowerDisk(store, tail_bytes=settings.idempotence_rebuild_bytes)
        self._follower = Follower(settings, url, store.paths, self._disk)
        self._disk.publish(self._follower.state)
        names = (COMMIT_LOG, TOPICS)
        self._grpc = GrpcServer(settings, tls, guard, names, (NotLeaderInterceptor(names, self._refuse),))
        add_refused_services(self._grpc.server)
        self._grpc.add_health()
        self._loop = asyncio.get_running_loop()
        self._failure: StoreError | None = None
        self._retention = compose_retention(
            settings,
            store,
            ask_for_snapshot=self._ask_for_snapshot,
            on_deleted=lambda: None,
            on_failure=self._fail,
        )
        self.metrics = FollowMetrics(lambda: self._follower.state, lambda: self._disk.end)

    def _refuse(self) -> NoReturn:
        raise NotLeaderError(
            f"this store follows the RocketMQ broker {self._url.broker}, and does not append: send to that broker, or "
            "unset TIDEMARK_FOLLOW to make this store independent of it",
            writer="",
        )

    def _ask_for_snapshot(self) -> None:
        """Save the queue offsets; the retention's thread calls this."""
        asyncio.run_coroutine_threadsafe(self._follower.save_queue_offsets(), self._loop)

    def _fail(self, error: StoreError) -> None:
        """End the process with *error* of the retention, whose thread calls this."""
        self._failure = error
        self._loop.call_soon_threadsafe(self._stopping.set)

    async def run(self) -> StoreError | None:
        """Follow until `stopping` is set. Return the error that ended the copy."""
        await self._grpc.report(("",))
        await self._grpc.server.start()
        log.info("follower_started", address=self._grpc.address, broker=self._url.broker, end=self._disk.end)
        self._retention.start()
        following = asyncio.create_task(self._follower.run())
        stopped = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((following, stopped), return_when=asyncio.FIRST_COMPLETED)
        has_ended = following.done()
        following.cancel()
        stopped.cancel()
        await asyncio.wait((following, stopped))
        await asyncio.to_thread(self._retention.close)
        await self._grpc.report(())
        await self._grpc.server.stop(_GRACE_S)
        await self._follower.close()
        log.info("follower_stopped", end=self._disk.end)
        failure = following.exception() if has_ended else None
        if failure is not None and not isinstance(failure, StoreError):
            raise failure
        return failure or self._failure
