"""Connection: one TCP connection of a client. Parses frames, limits what is in work, and sends answers together."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import structlog

from tidemark.access.guard import Caller
from tidemark.access.identity import Presented
from tidemark.errors import FrameIllegalError, StoreError
from tidemark.format.host import Host, encode_host
from tidemark.remoting.codes import RequestCode, ResponseCode
from tidemark.remoting.frame import Buffer, Frame
from tidemark.remoting.framing import decode, encode, split
from tidemark.tracing.request_id import begin_request

from .exchange import Exchange
from .fields import TOKEN

if TYPE_CHECKING:
    from .server import RemotingServer

log = structlog.get_logger()

_MOST_CALLERS = 64  # cached by token and code
_LINGER_NOT = struct.pack("ii", 1, 0)
_CODE_NAMES = {int(code): code.name for code in RequestCode}
_GO_AWAY = "the service is stopping: connect again"


class Connection(asyncio.Protocol):
    """One connection. Lives on the event loop of its server.

    last_read_s: time of the last bytes, on the loop's clock. client_ids: ids of the heartbeats that it has sent.
    """

    def __init__(self, server: RemotingServer) -> None:
        self._server = server
        self._loop = server.loop
        self._limits = server.limits
        self._transport: asyncio.Transport
        self._buffer = bytearray()  # the start of a frame whose rest has not arrived
        self._incomplete_since_s: float | None = None
        self._unanswered = 0
        self._unsent: list[Buffer] = []
        self._is_flush_planned = False
        self._is_paused = False
        self._is_write_paused = False
        self._write_paused_s = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._callers: dict[tuple[str | None, int], Caller] = {}
        self._certificate: bytes | None = None
        self.address = ""
        self.host = b""  # the client's address as in records, 8 or 20 bytes
        self.last_read_s = 0.0
        self.client_ids: set[str] = set()

    # -- the transport's calls ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of TCP and TLS
        """Accept the connection, unless the server has too many."""
        self._transport = transport
        self.address, self.host = _peer_of(transport)
        tls = transport.get_extra_info("ssl_object")
        self._certificate = None if tls is None else tls.getpeercert(binary_form=True)
        self.last_read_s = self._loop.time()
        transport.set_write_buffer_limits(self._limits.unsent_bytes)
        if not self._server.add(self):
            self._server.refused(self.address, "TOO_MANY_CONNECTIONS", limit=self._limits.connections)
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the requests in work, and forget the connection."""
        for task in list(self._tasks):
            task.cancel()
        self._unsent.clear()
        self._server.remove(self)

    def data_received(self, data: bytes) -> None:
        """Handle the whole frames in *data* and in the bytes before it."""
        self.last_read_s = self._loop.time()
        try:
            if self._buffer:
                self._buffer += data
                _, end = split(self._buffer, limit=self._limits.frame_bytes)
                if not end:
                    return
                data = bytes(memoryview(self._buffer)[:end])
                del self._buffer[:end]
            frames, end = split(data, limit=self._limits.frame_bytes)
            view = memoryview(data)
            for start, stop in frames:
                self._handle(decode(view[start:stop]))
            if end < len(data):
                self._buffer += view[end:]
        except FrameIllegalError as error:
            self._server.refused(self.address, str(error.facts["reason"]), message=error.message)
            self._flush()
            self._transport.close()
            return
        self._incomplete_since_s = self.last_read_s if self._buffer else None

    def eof_received(self) -> bool:
        """Close the connection."""
        return False

    def pause_writing(self) -> None:
        """Stop reading: the client takes its answers too slowly."""
        self._is_write_paused = True
        self._write_paused_s = self._loop.time()
        self._pause_or_resume()

    def resume_writing(self) -> None:
        """Read again: the client has taken its answers."""
        self._is_write_paused = False
        self._pause_or_resume()

    # -- requests -------------------------------------------------------------------------------------------------

    def _handle(self, frame: Frame) -> None:
        if frame.is_answer:  # the server's own requests are one way
            return
        self._unanswered += 1
        if self._unanswered > self._limits.in_flight:
            self._pause_or_resume()
        exchange = Exchange(self, frame, self._server.anyone)
        try:
            if self._server.is_stopping:
                exchange.answer(ResponseCode.GO_AWAY, remark=_GO_AWAY)
                return
            exchange.caller = self._caller(frame)
            handler = self._server.handlers.get(frame.code)
            if handler is None:
                remark = f" request type {frame.code} not supported"
                exchange.answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
                return
            rest = handler(exchange)
        except StoreError as error:
            exchange.refuse(error)
        except Exception as error:
            self._fail(exchange, error)
        else:
            if rest is not None:
                task = self._loop.create_task(self._run(exchange, rest))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _run(self, exchange: Exchange, rest: Coroutine[Any, Any, None]) -> None:
        try:
            await rest
        except StoreError as error:
            exchange.refuse(error)
        except Exception as error:
            self._fail(exchange, error)

    def _fail(self, exchange: Exchange, error: Exception) -> None:
        """Answer a request that a bug has ended."""
        request_id = begin_request(None)
        log.error("request_failed", code=exchange.frame.code, exc_info=error)
        remark = f"an internal error, logged with request_id {request_id}"
        exchange.answer(ResponseCode.SYSTEM_ERROR, remark=remark)

    def _caller(self, frame: Frame) -> Caller:
        """Return the admitted caller of *frame*. Raises UnauthenticatedError or RateLimitedError."""
        token = frame.fields.get(TOKEN)
        caller = self._callers.get((token, frame.code))
        if caller is None:
            action = _CODE_NAMES.get(frame.code, str(frame.code))
            presented = Presented(token, self._certificate)
            caller = self._server.guard.caller(presented, address=self.address, action=action)
            if len(self._callers) >= _MOST_CALLERS:
                self._callers.clear()
            self._callers[token, frame.code] = caller
        caller.admit()
        return caller

    # -- answers --------------------------------------------------------------------------------------------------

    def finish(self, request_code: int, response_code: int, data: Sequence[Buffer]) -> None:
        """Send the answer *data* to a request, together with other answers of this turn of the event loop."""
        self._server.counts.count(request_code, response_code)
        self._unanswered -= 1
        self._send(data)
        if self._is_paused:
            self._pause_or_resume()

    def notify(self, frame: Frame) -> None:
        """Send a request of the server's own."""
        self._send((encode(frame),))

    def _send(self, data: Sequence[Buffer]) -> None:
        if not data or self._transport.is_closing():
            return
        self._unsent += data
        if not self._is_flush_planned:
            self._is_flush_planned = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_planned = False
        unsent, self._unsent = self._unsent, []
        if unsent and not self._transport.is_closing():
            self._transport.writelines(unsent)

    def _pause_or_resume(self) -> None:
        is_full = self._is_write_paused or self._unanswered > self._limits.in_flight
        if is_full == self._is_paused or self._transport.is_closing():
            return
        self._is_paused = is_full
        if is_full:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # -- the server's calls ---------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """True if so many bytes of answers are unsent that a handler should wait before it makes a large one."""
        if self._transport.is_closing():
            return False
        unsent = sum(map(len, self._unsent)) + self._transport.get_write_buffer_size()
        return unsent > self._limits.unsent_bytes

    @property
    def is_idle(self) -> bool:
        """True if no request is in work."""
        return not self._unanswered and not self._unsent

    def overdue(self, now_s: float) -> str | None:
        """Return the reason for which the connection is to be cut; None for a healthy one."""
        limits = self._limits
        if self._incomplete_since_s is not None and now_s - self._incomplete_since_s > limits.frame_s:
            return "FRAME_INCOMPLETE"
        if self._is_write_paused and now_s - self._write_paused_s > limits.write_s:
            return "ANSWERS_NOT_TAKEN"
        if not self._is_paused and now_s - self.last_read_s > limits.idle_s:
            return "IDLE"
        return None

    def close(self) -> None:
        """Send the answers and close."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once and drop the data in the kernel's send buffer."""
        connection = self._transport.get_extra_info("socket")
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self._transport.abort()


def _peer_of(transport: asyncio.Transport) -> tuple[str, bytes]:
    peer = transport.get_extra_info("peername") or ("127.0.0.1", 0)
    address = peer[0].partition("%")[0].removeprefix("::ffff:")
    return address, encode_host(Host(address, peer[1]))
