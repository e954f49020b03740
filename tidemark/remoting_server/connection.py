"""Connection: one TCP connection of a client. Parses frames, limits unanswered requests, and sends answers together."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from tidemark.access.guard import Caller
from tidemark.errors import FrameIllegalError
from tidemark.format.host import Host, encode_host
from tidemark.remoting.frame import ANSWER, Buffer, Frame
from tidemark.remoting.framing import encode

from .counts import RequestCounts
from .frame_receiver import FrameReceiver
from .settings import ConnectionLimits

LINGER_NOT = struct.pack("ii", 1, 0)  # SO_LINGER: close drops unsent bytes


class Owner(Protocol):
    """The server of a connection, as the connection uses it."""

    loop: asyncio.AbstractEventLoop
    limits: ConnectionLimits
    counts: RequestCounts
    shared_memory: memoryview  # for `FrameReceiver`

    def add(self, connection: Connection) -> bool:
        """Add a new connection; return False if it must close."""

    def remove(self, connection: Connection) -> None:
        """Forget a connection that has ended."""

    def too_many(self, address: str) -> None:
        """Report a connection that `add` has refused."""

    def refused(self, address: str, reason: str, **facts: object) -> None:
        """Report a connection that is closed without an answer."""

    def buffer_changed(self, change: int) -> None:
        """Note that a connection keeps *change* more bytes of an incomplete frame, or fewer."""

    def handle(self, connection: Connection, frame: Frame) -> Coroutine[Any, Any, None] | None:
        """Answer a request, at once or in the returned coroutine. It must not raise."""


class Connection(asyncio.BufferedProtocol):
    """One connection. Lives on the event loop of its server.

    last_read_s: time of the last bytes, or from which it is read again, on the loop's clock.
    client_ids: ids of the heartbeats that it has sent.
    callers: admitted ones, by token and request code. certificate: the client's, DER.
    """

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._loop = owner.loop
        self._limits = owner.limits
        self._transport: asyncio.Transport
        self._received = FrameReceiver(owner.shared_memory, self._limits.frame_bytes)
        self._reported_bytes = 0  # of the buffer, to the owner
        self._incomplete_since_s: float | None = None
        self._unanswered = 0
        self._unsent: list[Buffer] = []
        self._is_flush_planned = False
        self._is_handling = False  # frames that arrived together
        self._is_paused = False
        self._is_write_paused = False
        self._given_bytes = 0  # to the transport, of all answers
        self._taken_bytes = 0  # of them, by the kernel at the last look
        self._taken_s = 0.0  # when the last of them were taken
        self._tasks: set[asyncio.Task[None]] = set()
        self.callers: dict[tuple[str | None, int], Caller] = {}
        self.certificate: bytes | None = None
        self.address = ""
        self.host = b""  # the client's address as in records, 8 or 20 bytes
        self.last_read_s = 0.0
        self.client_ids: set[str] = set()

    # -- the transport's calls ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of TCP and TLS
        """Accept the connection, unless the server has too many."""
        self._transport = transport
        self.address, self.host = peer_of(transport)
        tls = transport.get_extra_info("ssl_object")
        self.certificate = None if tls is None else tls.getpeercert(binary_form=True)
        self.last_read_s = self._loop.time()
        transport.set_write_buffer_limits(self._limits.unsent_bytes)
        if not self._owner.add(self):
            self._owner.too_many(self.address)
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the requests in work, and forget the connection."""
        for task in list(self._tasks):
            task.cancel()
        self._unsent.clear()
        self._drop_buffer()
        self._owner.remove(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the memory for the next bytes."""
        return self._received.room()

    def buffer_updated(self, nbytes: int) -> None:
        """Handle the frames that are whole with the *nbytes* bytes that have arrived."""
        self.last_read_s = self._loop.time()
        try:
            frames = self._received.received(nbytes)
            self._handle_all(frames)
        except FrameIllegalError as error:
            self._owner.refused(self.address, str(error.facts["reason"]), message=error.message)
            self._drop_buffer()
            self._flush()
            self._transport.close()
            return
        if frames:
            self._incomplete_since_s = None
        size = len(self._received)
        if size and self._incomplete_since_s is None:
            self._incomplete_since_s = self.last_read_s
        if size != self._reported_bytes:
            self._report_buffer()

    def _report_buffer(self) -> None:
        change = len(self._received) - self._reported_bytes
        self._reported_bytes += change
        self._owner.buffer_changed(change)

    def _drop_buffer(self) -> None:
        self._received = FrameReceiver(self._owner.shared_memory, self._limits.frame_bytes)
        self._report_buffer()

    def eof_received(self) -> bool:
        """Close the connection."""
        return False

    def pause_writing(self) -> None:
        """Stop reading: the client takes its answers too slowly."""
        self._is_write_paused = True
        self._taken_s = self._loop.time()
        self._pause_or_resume()

    def resume_writing(self) -> None:
        """Read again: the client has taken its answers."""
        self._is_write_paused = False
        self._pause_or_resume()

    # -- requests -------------------------------------------------------------------------------------------------

    def _handle_all(self, frames: list[Frame]) -> None:
        """Handle frames that arrived together; those that can be answered at once are answered together."""
        self._is_handling = True
        for frame in frames:
            self._handle(frame)
        self._is_handling = False
        if self._unsent:
            self._flush()

    def _handle(self, frame: Frame) -> None:
        if frame.flag & ANSWER:  # the server's own requests are one way
            return
        self._unanswered += 1
        if self._unanswered > self._limits.in_flight:
            self._pause_or_resume()
        rest = self._owner.handle(self, frame)
        if rest is not None:
            task = self._loop.create_task(rest)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    # -- answers --------------------------------------------------------------------------------------------------

    def finish(self, request_code: int, response_code: int, data: Sequence[Buffer]) -> None:
        """Send the answer *data* to a request: at once if no other is in work, else with others of this loop turn."""
        self._owner.counts.count(request_code, response_code)
        self._unanswered -= 1
        if data:
            self._send(data)
        if self._is_paused:
            self._pause_or_resume()

    def notify(self, frame: Frame) -> None:
        """Send a request of the server's own."""
        self._send((encode(frame),))

    def _send(self, data: Sequence[Buffer]) -> None:
        if self._transport.is_closing():
            return
        self._unsent += data
        if self._is_handling:
            return
        if not self._unanswered:
            self._flush()
        elif not self._is_flush_planned:
            self._is_flush_planned = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_planned = False
        unsent, self._unsent = self._unsent, []
        if unsent and not self._transport.is_closing():
            self._given_bytes += sum(map(len, unsent))
            self._transport.writelines(unsent)

    def _pause_or_resume(self) -> None:
        is_full = self._is_write_paused or self._unanswered > self._limits.in_flight
        if is_full == self._is_paused or self._transport.is_closing():
            return
        self._is_paused = is_full
        if is_full:
            self._transport.pause_reading()
        else:
            self.last_read_s = self._loop.time()  # until now the client could send nothing
            if self._incomplete_since_s is not None:
                self._incomplete_since_s = self.last_read_s
            self._transport.resume_reading()

    # -- the server's calls ---------------------------------------------------------------------------------------

    @property
    def incomplete_bytes(self) -> int:
        """Number of received bytes of an incomplete frame."""
        return len(self._received)

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
        if self._is_write_paused:
            taken = self._given_bytes - self._transport.get_write_buffer_size()
            if taken > self._taken_bytes:
                self._taken_bytes, self._taken_s = taken, now_s
            if now_s - self._taken_s > limits.write_s:
                return "ANSWERS_NOT_TAKEN"
        if self._is_paused:  # it is not read, so it cannot send
            return None
        if self._incomplete_since_s is not None and now_s - self._incomplete_since_s > limits.frame_s:
            return "FRAME_INCOMPLETE"
        if now_s - self.last_read_s > limits.idle_s:
            return "IDLE"
        return None

    def close(self) -> None:
        """Send the answers and close."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once and drop the data in the kernel's send buffer."""
        self._drop_buffer()
        abort(self._transport)


def abort(transport: asyncio.Transport) -> None:
    """Close *transport* at once and drop the data in the kernel's send buffer."""
    connection = transport.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
    transport.abort()


def peer_of(transport: asyncio.Transport) -> tuple[str, bytes]:
    """Return the client's IP address, and its address as in records."""
    peer = transport.get_extra_info("peername") or ("127.0.0.1", 0)
    address = ip_address_of(peer)
    return address, encode_host(Host(address, peer[1]))


def ip_address_of(peer: tuple[Any, ...]) -> str:
    """Return the IP address of a socket's address, without scope, and as IPv4 if it is one."""
    return str(peer[0]).partition("%")[0].removeprefix("::ffff:")
