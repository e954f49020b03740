"""RequestSpanMiddleware: makes a span for each request, named after its route and never after the concrete path."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars

from tidemark.tracing.attributes import REQUEST_ID
from tidemark.tracing.propagation import carrier_in, context_of, trace_id_of
from tidemark.tracing.request_id import current_request_id

_SERVER_FAULT = 500


class RequestSpanMiddleware:
    """Makes the spans of requests if traces are on. A request with a `traceparent` header continues that trace."""

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = ((str(name, "latin-1"), str(value, "latin-1")) for name, value in scope["headers"])
        span = self._tracer.start_span(
            scope["method"],
            context_of(carrier_in(headers)),
            SpanKind.SERVER,
            {
                "http.request.method": scope["method"],
                "url.path": scope["path"],
                "url.scheme": scope["scheme"],
                REQUEST_ID: current_request_id() or "",
            },
        )
        if span.is_recording():
            bind_contextvars(trace_id=trace_id_of(span))

        async def see(message: Message) -> None:
            if message["type"] == "http.response.start":
                _set_status(span, message["status"])
            await send(message)

        with trace.use_span(span, end_on_exit=True):
            try:
                await self._app(scope, receive, see)
            finally:
                _name(span, scope)


def _set_status(span: Span, status: int) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= _SERVER_FAULT:
        span.set_status(Status(StatusCode.ERROR))


def _name(span: Span, scope: Scope) -> None:
    """Name the span after the route, which is known only after routing."""
    path = getattr(scope.get("route"), "path", None)
    if path is not None:
        span.update_name(f"{scope['method']} {path}")
        span.set_attribute("http.route", path)
