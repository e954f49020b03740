"""RequestIdMiddleware: gives each request the caller's id or a new one, which is in the log and the answer."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidemark.tracing.request_id import HEADER, begin_request

RAW_HEADER = HEADER.encode()


class RequestIdMiddleware:
    """Sets the request's id. It must be the outermost middleware, so that all log lines of a request have the id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = begin_request(given_id(scope)).encode()

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (RAW_HEADER, request_id)]
            await send(message)

        await self._app(scope, receive, send_with_id)


def given_id(scope: Scope) -> str | None:
    """Return the id that the caller gave, which may be malformed."""
    for name, value in scope["headers"]:
        if name == RAW_HEADER:
            return str(value, "latin-1")
    return None
