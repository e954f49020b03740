"""Start of the writer's process: settings ▸ logging ▸ recovery ▸ serving."""

from __future__ import annotations

import asyncio
import signal
import sys
from functools import partial

import structlog
from prometheus_client import CollectorRegistry

from tidemark.access.followed_files import followed_files
from tidemark.access.guard import Guard
from tidemark.access.metrics import AccessState
from tidemark.access.rate_limits import RateLimits
from tidemark.errors import StoreError
from tidemark.metrics.families import make_registry
from tidemark.metrics.listener import listen
from tidemark.metrics.tls_state import TlsState
from tidemark.replication.followed_broker import forget_followed_broker
from tidemark.settings.door import SettingsRefusedError, read_settings
from tidemark.settings.logs import set_up_logging
from tidemark.settings.malloc import limit_malloc
from tidemark.settings.settling import settle_memory
from tidemark.status import status_of
from tidemark.store.open_files_limit import allow_many_files
from tidemark.store.storage import DiskStorage
from tidemark.tls.reloading import Reloading, log_reload

from .config import WriterSettings
from .follow_server import FollowServer, with_broker_sizes
from .follow_settings import BrokerUrl
from .group_member import GroupMember
from .log.open_store import open_store, release_store
from .server import WriterServer
from .stop_request import StopRequest

log = structlog.get_logger()

_SWITCH_INTERVAL_S = 0.001  # shorter than Python's 5 ms, so that the appender and flusher wait less for the event loop


async def serve(settings: WriterSettings) -> int:
    """Serve until a signal or a failure and return the process's exit code."""
    listens = (settings.writer_listen, settings.writer_remoting_listen, settings.slaves_listen)
    tls = settings.open_tls(listens, log_reload)
    registry = make_registry()
    listener = listen(settings.writer_metrics_listen, registry, setting="TIDEMARK_WRITER_METRICS_LISTEN")
    guard = settings.open_writer_guard() or Guard(None, RateLimits(), None)
    registry.register(AccessState(guard))
    if tls is not None:
        registry.register(TlsState(tls))
    if listener is not None:
        log.info("metrics_served", port=listener.server_port)
    stop = StopRequest()
    serve_role = _serve_alone
    if settings.is_replicated:
        serve_role = _serve_member
    elif (broker := settings.followed_broker) is not None:
        serve_role = partial(_serve_follower, broker)
    try:
        async with followed_files(tls, guard):
            failure = await serve_role(settings, tls, guard, stop, registry)
    except (RuntimeError, OSError) as error:
        address = settings.writer_listen if isinstance(error, RuntimeError) else settings.writer_remoting_listen
        raise SystemExit(f"writer: cannot listen on {address}: {error}") from error
    finally:
        guard.close()
    if failure is not None and serve_role is not _serve_alone:  # which has logged it
        sys.stderr.write(f"writer: {status_of(failure).reason}: {failure.message}\n")
    return 0 if failure is None else 1


async def _serve_alone(
    settings: WriterSettings, tls: Reloading | None, guard: Guard, stop: StopRequest, registry: CollectorRegistry
) -> StoreError | None:
    store = await asyncio.to_thread(open_store, settings, DiskStorage())
    forget_followed_broker(store.paths.follow)
    _handle_signals(stop)  # before the bind, after which the writer counts as started
    try:
        server = WriterServer(settings, store, tls, guard, stop.next_role())
        await server.bind_remoting()
    except (RuntimeError, OSError):
        release_store(store)
        raise
    await server.start()
    settle_memory()
    registry.register(server.metrics)
    return await server.run()


async def _serve_member(
    settings: WriterSettings, tls: Reloading | None, guard: Guard, stop: StopRequest, registry: CollectorRegistry
) -> StoreError | None:
    _handle_signals(stop)
    return await GroupMember(settings, tls, guard, stop, registry).run()


async def _serve_follower(
    broker: BrokerUrl,
    settings: WriterSettings,
    tls: Reloading | None,
    guard: Guard,
    stop: StopRequest,
    registry: CollectorRegistry,
) -> StoreError | None:
    settings = await with_broker_sizes(settings, broker)
    store = await asyncio.to_thread(open_store, settings, DiskStorage())
    _handle_signals(stop)
    try:
        server = FollowServer(settings, broker, store, tls, guard, stop.next_role())
    except (RuntimeError, OSError):
        release_store(store)
        raise
    registry.register(server.metrics)
    return await server.run()


def _handle_signals(stop: StopRequest) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop_once, loop, number, stop)


def _stop_once(loop: asyncio.AbstractEventLoop, number: int, stop: StopRequest) -> None:
    """Stop in order; the same signal again ends the process at once."""
    loop.remove_signal_handler(number)
    stop.ask()


def main(arguments: list[str] | None = None) -> int:
    """Return the exit code: 0 after a clean stop, 1 if the store cannot be served, 2 for bad settings."""
    try:
        settings = read_settings("writer", WriterSettings, sys.argv[1:] if arguments is None else arguments)
    except SettingsRefusedError as error:
        sys.stderr.writelines(f"{line}\n" for line in error.lines)
        return 2
    set_up_logging(settings.log_level)
    allow_many_files()
    limit_malloc()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        return asyncio.run(serve(settings))
    except StoreError as error:
        sys.stderr.write(f"writer: {status_of(error).reason}: {error.message}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"writer: {error}\n")
        return 1
