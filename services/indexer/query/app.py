"""The FastAPI application of one store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.types import Receive, Scope, Send

from tidemark.access.followed_files import followed_files
from tidemark.access.guard import Guard
from tidemark.read.warm_up import warm_up
from tidemark.settings.settling import settle_memory
from tidemark.tls.reloading import Reloading

from .config import QuerySettings
from .remoting.composition import QueryRemoting
from .routes import api_page as routes_api_page
from .routes import append as routes_append
from .routes import console as routes_console
from .routes import groups as routes_groups
from .routes import log as routes_log
from .routes import lookup as routes_lookup
from .routes import lookup_many as routes_lookup_many
from .routes import members as routes_members
from .routes import pull as routes_pull
from .routes import pull_many as routes_many_queues
from .routes import retry as routes_retry
from .routes import status as routes_status
from .routes import topics as routes_topics
from .state.housekeeping import close_deleted_files, remove_expired_members
from .state.metrics import MetricsMiddleware
from .state.service_state import ServiceState
from .web import openapi, problems
from .web.direct_dispatch import DirectDispatch
from .web.pretty_json import PrettyJson
from .web.request_id_middleware import RequestIdMiddleware
from .web.static_pages import redirect

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from tidemark.tracing.exporting import Tracing

_ROUTES = (
    routes_pull,
    routes_many_queues,
    routes_lookup,
    routes_lookup_many,
    routes_topics,
    routes_append,
    routes_groups,
    routes_members,
    routes_retry,
    routes_log,
    routes_status,
)
_GRACE_S = 10.0  # at a stop, for requests in work
_API_VERSION = "1"  # version of the contract under /v1, not of the program
_NO_TELEMETRY: TelemetryConfig = {  # our middleware makes spans and metrics; FastAPI's would cost time per request
    "tracing": False,
    "metrics": False,
    "logs": False,
    "auto_configure": False,
}
_ABOUT = """Reads an append-only event log in RocketMQ's file format: pulls, lookups, offsets, groups.

Queue offsets are cursors. The service stores nothing for a reader except the offsets that the reader sets and the
queues that it holds as a member of a group. Messages above the watermark are not returned.
Every failure is `application/problem+json` with a stable `reason`.
With `pretty=1` any JSON answer is indented.
"""


class QueryApp(FastAPI):
    """The application. direct: answers the requests that do not need the middleware stack; None: all need it."""

    direct: DirectDispatch | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self.direct is None or not await self.direct.answer(scope, receive, send):
            await super().__call__(scope, receive, send)


def create_app(
    settings: QuerySettings,
    tls: Reloading | None = None,
    guard: Guard | None = None,
    tracing: Tracing | None = None,
) -> QueryApp:
    """Create the application for *settings*. It opens the store now and reads it until its lifespan ends.

    Args:
        tls: the server's TLS state; None for plaintext.
        guard: None if every caller may do everything.
        tracing: None if traces are off.
    """
    state = ServiceState(settings, tls, guard)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(warm_up)
        settle_memory()
        state.watcher.start()
        await bind_remoting(app)
        remoting: QueryRemoting | None = app.state.remoting
        if remoting is not None:
            await remoting.start()
        for_ever = [
            close_deleted_files(state),
            remove_expired_members(state),
        ]
        tasks = [asyncio.create_task(loop) for loop in for_ever]
        async with followed_files(tls, state.guard):
            yield
        for task in tasks:
            task.cancel()
        if remoting is not None:
            await remoting.stop(_GRACE_S)
        await state.close()

    app = QueryApp(
        title="Tidemark query",
        version=_API_VERSION,
        description=_ABOUT,
        lifespan=lifespan,
        telemetry=_NO_TELEMETRY,
        docs_url=None,  # FastAPI's pages load their scripts from another server
        redoc_url=None,
    )
    app.state.service = state
    app.state.pull_spans = None  # traces are off
    app.state.remoting = None
    # `include_router` would match each path one level deeper. FastAPI's own pages come after these routes.
    app.router.routes[:0] = [route for routes in _ROUTES for route in routes.router.routes]
    app.router.routes += routes_api_page.routes()
    if settings.console:
        app.router.routes += routes_console.routes()
    app.router.routes.append(redirect(routes_console.PATH if settings.console else routes_api_page.PATH))
    problems.install(app)
    openapi.describe(app)
    app.add_middleware(MetricsMiddleware, metrics=state.metrics)
    if tracing is not None:
        _add_spans(app, state, tracing.tracer)
    app.add_middleware(PrettyJson)
    app.add_middleware(RequestIdMiddleware)
    if tracing is None:
        app.direct = DirectDispatch(app, state.metrics)
    return app


async def bind_remoting(app: FastAPI) -> None:
    """Bind the address for RocketMQ's clients, if the settings have one and it is not bound yet.

    Call it on the event loop that will run the application. Raises OSError.
    """
    state: ServiceState = app.state.service
    listen = state.settings.query_remoting_listen
    if not listen or app.state.remoting is not None:
        return
    remoting = QueryRemoting(state, app.state.pull_spans)
    try:
        await remoting.bind()
    except OSError as error:
        variable = "TIDEMARK_QUERY_REMOTING_LISTEN"
        raise OSError(f"cannot listen on {listen} for RocketMQ's clients ({variable}): {error}") from error
    app.state.remoting = state.remoting = remoting
    state.metrics.registry.register(remoting)


def _add_spans(app: FastAPI, state: ServiceState, tracer: Tracer) -> None:
    from .pull.pull_spans import PullSpans
    from .web.request_span_middleware import RequestSpanMiddleware

    app.add_middleware(RequestSpanMiddleware, tracer=tracer)
    app.state.pull_spans = PullSpans(tracer, limit=state.settings.trace_max_messages)
