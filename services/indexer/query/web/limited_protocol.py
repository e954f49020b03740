"""uvicorn's HTTP/1.1 connection, with limits: how many there are, how long a request may take to come and an answer to
go, and how large a request's head may be.

uvicorn with httptools has none of these. What is refused here is `application/problem+json` too, and is no line in the
log, which anybody could fill.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any, NamedTuple

import httptools
from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from tidemark.errors import InFlightLimitError

from ..config import QuerySettings
from .problems import of_store_error, problem

_LEAST_TAKEN_BYTES = 64 << 10  # of an answer, within the write timeout: less is as good as nothing
_BYTES_AROUND_A_HEADER = 4
_RETRY_AFTER_MS = 1_000
_LINGER_NOT = struct.pack("ii", 1, 0)


class ConnectionLimits(NamedTuple):
    """What holds for each connection, and how many there may be."""

    connections: int
    head_bytes: int
    head_s: float
    body_s: float
    write_s: float

    @classmethod
    def of(cls, settings: QuerySettings, connections: int) -> ConnectionLimits:
        """As they are set; *connections* is what the process can hold."""
        return cls(
            connections,
            settings.query_max_head_bytes,
            settings.query_head_timeout_ms / 1000,
            settings.query_body_timeout_ms / 1000,
            settings.query_write_timeout_ms / 1000,
        )


class LimitedHttpProtocol(HttpToolsProtocol):
    """One connection. A subclass per server carries its `limits`, because uvicorn makes the instances."""

    limits: ConnectionLimits

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._received_bytes = 0  # since the head that is coming began
        self._head_bytes = 0  # of it, as far as it is understood
        self._in_head = True
        self._refusal: Response | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    # -- the connection -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """One more, unless there are too many: then it is told so and closed, and the others do not notice."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            error = InFlightLimitError(
                "too many connections", limit=self.limits.connections, retry_after_ms=_RETRY_AFTER_MS
            )
            self._refuse(of_store_error(error))
        else:
            self._expect(self.limits.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Gone."""
        self._stop_reading_timer()
        self._stop_writing_timer()
        super().connection_lost(exc)

    # -- a request ------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """As uvicorn's, without a line in the log for what is no HTTP."""
        self._unset_keepalive_if_required()
        if self._in_head:
            self._received_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # to a protocol that nobody here speaks: the request is answered as it is
            pass
        except httptools.HttpParserError:
            self.send_400_response("this is no request of HTTP/1.1")
        else:
            self._wait_for_the_rest()

    def on_url(self, url: bytes) -> None:
        """A piece of it."""
        super().on_url(url)
        self._add_to_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """A whole one."""
        super().on_header(name, value)
        self._add_to_head(len(name) + len(value) + _BYTES_AROUND_A_HEADER)

    def on_headers_complete(self) -> None:
        """The head is there; its body has a time of its own."""
        self._in_head = False
        self._stop_reading_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of the request is there: now it is ours to hurry."""
        self._in_head, self._received_bytes, self._head_bytes = True, 0, 0
        self._stop_reading_timer()
        super().on_message_complete()

    def _wait_for_the_rest(self) -> None:
        """Of a request that is not there whole. Most are, and need no timer."""
        if self._in_head and self._received_bytes > self.limits.head_bytes:
            self._refuse(self._too_large_head())
        elif self._reading is None and (self._received_bytes or not self._in_head):
            self._expect(self.limits.head_s if self._in_head else self.limits.body_s)

    def _add_to_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self.limits.head_bytes:
            self._refusal = self._too_large_head()
            raise ValueError("the head is too large")  # ends the parser; `send_400_response` answers

    def _too_large_head(self) -> Response:
        limit = self.limits.head_bytes
        return problem(431, "HEAD_TOO_LARGE", "the request's line and headers are too large", {"limit_bytes": limit})

    def _expect(self, seconds: float) -> None:
        """What is to come has to be here within *seconds*."""
        self._stop_reading_timer()
        self._reading = self.loop.call_later(seconds, self._too_slow)

    def _too_slow(self) -> None:
        self._reading = None
        if self.cycle is None or self.cycle.response_complete or self._in_head:
            self._refuse(problem(408, "REQUEST_TIMEOUT", "the request did not come in time"))
        else:  # a handler reads the body: it is told that the client is gone
            self._cut()

    def _stop_reading_timer(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    # -- an answer ------------------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """The client takes it more slowly than it is written."""
        super().pause_writing()
        self._stop_writing_timer()
        self._look_again(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """It has caught up."""
        self._stop_writing_timer()
        super().resume_writing()

    def _look_again(self, left: int) -> None:
        self._writing = self.loop.call_later(self.limits.write_s, self._require_progress, left)

    def _require_progress(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left > before - _LEAST_TAKEN_BYTES:
            self._cut()
        else:
            self._look_again(left)

    def _stop_writing_timer(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    # -- refusing -------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """What uvicorn calls for anything that is no HTTP; here also for what is too large."""
        self._refuse(self._refusal or problem(400, "BAD_REQUEST", msg))

    def _cut(self) -> None:
        """Close at once. What the kernel still has for the client goes, too: it would wait for minutes to be taken."""
        connection = self.transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self.transport.abort()

    def _refuse(self, response: Response) -> None:
        """Answer and close. Whatever else comes is not read."""
        if self.transport.is_closing():
            return
        self._stop_reading_timer()
        if self.cycle is None or self.cycle.response_complete:  # else an answer is under way, and this is none of it
            head = b"".join(b"%s: %s\r\n" % header for header in response.raw_headers)
            self.transport.write(
                STATUS_LINE[response.status_code] + head + b"connection: close\r\n\r\n" + bytes(response.body)
            )
        self.transport.close()


def limited(limits: ConnectionLimits, kind: type[LimitedHttpProtocol]) -> type[LimitedHttpProtocol]:
    """The class for one server."""
    return type("HttpProtocol", (kind,), {"limits": limits})
