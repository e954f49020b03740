"""RequestIdMiddleware: gives each request the caller's id or a new one, which is in the log and the answer."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidemark.tracing.request_id import HEADER, begin_request

_HEADER = HEADER.encode()


class RequestIdMiddleware:
    """Sets the request's id. It must be the outermost middleware, so that all log lines of a request have the id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = begin_request(_given(scope)).encode()

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (_HEADER, request_id)]
            await send(message)

        await self._app(scope, receive, send_with_id)


def _given(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == _HEADER:
            return str(value, "latin-1")
    return None
