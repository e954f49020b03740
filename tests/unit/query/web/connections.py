"""Connections of the HTTP protocol over a transport that a test controls."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from services.indexer.query.web.busy_polling import BusyPolling
from services.indexer.query.web.limited_protocol import ConnectionLimits, LimitedHttpProtocol, limited
from tests.waiting import until_async

LIMITS = ConnectionLimits(connections=2, head_bytes=1000, head_s=60, body_s=60, write_s=60)
WAIT_S = 30.0


class FakeTransport(asyncio.Transport):
    """Keeps the written bytes.

    unsent  what the write buffer holds at each look; the last number stays
    extra   what get_extra_info returns
    """

    def __init__(self, **extra: Any) -> None:
        super().__init__()
        self.written = b""
        self.unsent = [0]
        self.is_closed = False
        self.is_aborted = False
        self._extra = extra

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._extra.get(name, default)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return self.unsent.pop(0) if len(self.unsent) > 1 else self.unsent[0]

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = self.is_closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Connections:
    """The connections of one server. Use it on a running event loop."""

    def __init__(
        self,
        limits: ConnectionLimits = LIMITS,
        app: ASGIApp | None = None,
        kind: type[LimitedHttpProtocol] = LimitedHttpProtocol,
    ) -> None:
        self._config = Config(app or answer_with_body, log_config=None, lifespan="off", ws="none", proxy_headers=False)
        self._state = ServerState()
        self._kind = limited(limits, kind, BusyPolling(0))

    def open(self, **extra: Any) -> tuple[LimitedHttpProtocol, FakeTransport]:
        """Return a new connection and its transport."""
        protocol = self._kind(self._config, self._state, {})
        transport = FakeTransport(**extra)
        protocol.connection_made(transport)
        return protocol, transport


async def answer_with_body(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request with its own body."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        more = message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def answered(transport: FakeTransport, count: int = 1) -> None:
    """Return once *count* requests of a connection have been answered with 200."""
    await until_async(lambda: transport.written.count(b"HTTP/1.1 200") == count)


def refusal_in(transport: FakeTransport) -> tuple[int, str]:
    """Return the status and the reason of the only answer on a connection, which the service has closed."""
    head, _, body = transport.written.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert b"content-type: application/problem+json" in lines
    assert b"connection: close" in lines
    assert transport.is_closed
    return int(lines[0].split()[1]), str(json.loads(body)["reason"])
