"""uvicorn's HTTP/1.1 connection with limits on connections, a request's head, and the times to receive and to send.

uvicorn with httptools has none of these. Refusals are `application/problem+json`, and they are not logged, because any
client could fill the log with them.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import struct
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import httptools
from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from tidemark.errors import InFlightLimitError
from tidemark.read.file_run import FileRange

from ..config import QuerySettings
from ..state.departure import DEPARTURE, Departure
from .busy_polling import BusyPolling
from .chunked_response import SEND_PIECES, Pieces
from .file_sending import SEND_FILES, FileSending
from .problems import of_store_error, problem

_LEAST_TAKEN_BYTES = 64 << 10  # a client that takes less of an answer within the write timeout is disconnected
_BYTES_AROUND_A_HEADER = 4
_RETRY_AFTER_MS = 1_000
_LINGER_NOT = struct.pack("ii", 1, 0)


class ConnectionLimits(NamedTuple):
    """Limits of each connection, and the most connections at once."""

    connections: int
    head_bytes: int
    head_s: float
    body_s: float
    write_s: float

    @classmethod
    def of(cls, settings: QuerySettings, connections: int) -> ConnectionLimits:
        """Return the limits of *settings*. connections: most connections that the process can hold."""
        return cls(
            connections,
            settings.query_max_head_bytes,
            settings.query_head_timeout_ms / 1000,
            settings.query_body_timeout_ms / 1000,
            settings.query_write_timeout_ms / 1000,
        )


class LimitedHttpProtocol(HttpToolsProtocol):
    """One connection. Each server has a subclass with its `limits`, because uvicorn creates the instances."""

    limits: ConnectionLimits
    polling: BusyPolling
    sends_files = True

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._received_bytes = 0  # bytes since the beginning of the current head
        self._head_bytes = 0  # bytes of the current head that are parsed
        self._in_head = True
        self._refusal: Response | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._file_sending: FileSending | None = None
        self._departure = Departure()

    # -- the connection -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Accept the connection; beyond the limit, answer 429 and close it."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            error = InFlightLimitError(
                f"too many connections: at most {self.limits.connections} "
                "(TIDEMARK_MAX_CONNECTIONS, or the process's limit of open files)",
                limit=self.limits.connections,
                retry_after_ms=_RETRY_AFTER_MS,
            )
            self._refuse(of_store_error(error))
        else:
            self._expect(self.limits.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers, the sending of a file, and the waits of requests."""
        self._stop_reading_timer()
        self._stop_writing_timer()
        super().connection_lost(exc)
        self._departure.happen()
        if self._file_sending is not None:
            self._file_sending.wake()

    # -- receiving a request --------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse data as uvicorn does, but do not log malformed requests."""
        self.polling.arrived()
        self._unset_keepalive_if_required()
        if self._in_head:
            self._received_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # no other protocol is supported: answer the HTTP request
            pass
        except httptools.HttpParserError:
            self.send_400_response("the data is not an HTTP/1.1 request")
        else:
            self._wait_for_the_rest()

    def on_url(self, url: bytes) -> None:
        """Count a piece of the URL."""
        super().on_url(url)
        self._add_to_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header."""
        super().on_header(name, value)
        self._add_to_head(len(name) + len(value) + _BYTES_AROUND_A_HEADER)

    def on_headers_complete(self) -> None:
        """Stop the head's timer; the body has its own."""
        self._in_head = False
        self._stop_reading_timer()
        super().on_headers_complete()
        # weakly: the cycle has the scope, and each request would leave objects to the garbage collector
        cycle = weakref.ref(self.cycle)
        extensions: dict[str, Any] = self.scope.setdefault("extensions", {})
        extensions[DEPARTURE] = self._departure
        extensions[SEND_PIECES] = functools.partial(self._send_pieces, cycle)
        if self.sends_files:
            extensions[SEND_FILES] = functools.partial(self._send_files, cycle)

    def on_message_complete(self) -> None:
        """Stop the body's timer: the request is complete."""
        self._in_head, self._received_bytes, self._head_bytes = True, 0, 0
        self._stop_reading_timer()
        super().on_message_complete()

    def _wait_for_the_rest(self) -> None:
        """Start a timer if the request is incomplete. Most requests are complete and need none."""
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
        detail = f"the request's line and headers are larger than {limit} bytes (TIDEMARK_QUERY_MAX_HEAD_BYTES)"
        return problem(431, "HEAD_TOO_LARGE", detail, {"limit_bytes": limit})

    def _expect(self, seconds: float) -> None:
        """Require the rest of the head or body within *seconds*."""
        self._stop_reading_timer()
        self._reading = self.loop.call_later(seconds, self._too_slow)

    def _too_slow(self) -> None:
        self._reading = None
        if self.cycle is None or self.cycle.response_complete or self._in_head:
            self._refuse(problem(408, "REQUEST_TIMEOUT", "the request did not arrive in time"))
        else:  # a handler reads the body, and gets a disconnect
            self._cut()

    def _stop_reading_timer(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def on_response_complete(self) -> None:
        """Continue as uvicorn does; the client's next request may come soon."""
        super().on_response_complete()
        self.polling.answered(self.loop)

    # -- sending an answer ----------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """Start to check the client's progress: it takes the answer more slowly than it is written."""
        super().pause_writing()
        self._stop_writing_timer()
        self._look_again(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop checking: the client has caught up."""
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

    async def _send_files(self, asked: weakref.ref[RequestResponseCycle], pieces: Sequence[FileRange]) -> None:
        """Send *pieces* as the next bytes of the answer to *asked*. If the client is slow, disconnect it."""
        cycle = asked()
        if cycle is None or cycle.disconnected:
            return
        cycle.expected_content_length -= sum(map(len, pieces))
        self._file_sending = FileSending(self.transport, lambda: cycle.disconnected, self.limits.write_s)
        try:
            await self._file_sending.send(pieces)
        except OSError:  # the client is too slow, or the connection or the file fails: the answer cannot be completed
            self._cut()
        finally:
            self._file_sending = None

    async def _send_pieces(self, asked: weakref.ref[RequestResponseCycle], pieces: Pieces) -> None:
        """Send *pieces* as the next bytes of the answer to *asked*."""
        cycle = asked()
        if cycle is not None and cycle.flow.write_paused and not cycle.disconnected:
            await cycle.flow.drain()
        if cycle is not None and not cycle.disconnected:
            cycle.expected_content_length -= sum(map(len, pieces))
            self.transport.writelines(pieces)

    # -- refusals -------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Answer 400 for malformed data, or with the refusal of a head that is too large. uvicorn calls this, too."""
        self._refuse(self._refusal or problem(400, "BAD_REQUEST", msg))

    def _cut(self) -> None:
        """Close at once and drop the data in the kernel's send buffer, where it could otherwise stay for minutes."""
        connection = self.transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self.transport.abort()

    def _refuse(self, response: Response) -> None:
        """Answer and close. Data that arrives later is not read."""
        if self.transport.is_closing():
            return
        self._stop_reading_timer()
        if self.cycle is None or self.cycle.response_complete:  # otherwise another answer is being sent
            head = b"".join(b"%s: %s\r\n" % header for header in response.raw_headers)
            self.transport.write(
                STATUS_LINE[response.status_code] + head + b"connection: close\r\n\r\n" + bytes(response.body)
            )
        self.transport.close()


def limited(
    limits: ConnectionLimits, kind: type[LimitedHttpProtocol], polling: BusyPolling
) -> type[LimitedHttpProtocol]:
    """Return a subclass of *kind* with *limits* and *polling*, for one server."""
    return type("HttpProtocol", (kind,), {"limits": limits, "polling": polling})
