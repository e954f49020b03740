"""FrameSocket: a connection for remoting frames. One thread may send while another receives."""

from __future__ import annotations

import contextlib
import fcntl
import select
import socket
import ssl
import struct
import termios
import threading
import time
from typing import Self

from tidemark.remoting.frame import Frame
from tidemark.remoting.frame_buffer import FrameBuffer
from tidemark.tls.credentials import Credentials

_RECEIVE_BYTES = 16 << 10  # one recv of this size is 20 µs faster than one of the larger size
_RECEIVE_MANY_BYTES = 256 << 10
_LARGEST_FRAME = (1 << 31) - 1  # of an answer: the service limits it
_READ, _WRITE = select.POLLIN, select.POLLOUT
_OPTIONS = (  # a host that is gone is noticed about a second after the first byte that it does not confirm
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPIDLE", 0), 1),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPINTVL", 0), 1),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPCNT", 0), 1),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_USER_TIMEOUT", 0), 1_000),  # milliseconds
)


class FrameSocket:
    """One connection; its methods raise OSError when it has ended. Bytes that are no frame raise FrameIllegalError."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._tls = connection if isinstance(connection, ssl.SSLSocket) else None
        self._send_guard = threading.Lock()
        self._receive_guard = threading.Lock() if self._tls is None else self._send_guard  # OpenSSL: one call at a time
        self._least_room = _room(connection)  # the kernel may increase it
        self._receive_size = _RECEIVE_BYTES  # of the next recv: large while much arrives at once
        self._wants_input = False  # TLS must receive before it can send
        self._buffer = FrameBuffer(_LARGEST_FRAME)
        self._readable, self._writable = _poll(connection, _READ), _poll(connection, _WRITE)
        self._sender_readable = _poll(connection, _READ)  # two threads must not use one poll object at once

    @classmethod
    def connect(cls, address: str, credentials: Credentials, *, is_tls: bool, timeout_s: float) -> Self:
        """Connect to host:port. Raises OSError, of which ssl.SSLError is one; TlsFilesError."""
        host, _, port = address.rpartition(":")
        connection = socket.create_connection((host, int(port)), timeout_s)
        try:
            for level, option, value in _OPTIONS:
                if option:
                    connection.setsockopt(level, option, value)
            if is_tls:
                connection = credentials.context().wrap_socket(connection, server_hostname=host)
            return cls(connection)
        except BaseException:
            connection.close()
            raise

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._socket.fileno()

    def send(self, data: bytes | memoryview, timeout_s: float) -> None:
        """Send all of *data*. Raises TimeoutError if the other side does not take it; part of it may be sent then."""
        deadline = time.monotonic() + timeout_s
        while data := self.send_now(data):
            left_s = deadline - time.monotonic()
            poller = self._sender_readable if self._wants_input else self._writable
            if left_s <= 0 or not poller.poll(left_s * 1000):
                raise TimeoutError("the other side does not take the data")

    def send_now(self, data: bytes | memoryview) -> bytes | memoryview:
        """Send what the other side takes without a wait; return the rest."""
        with self._send_guard:
            try:
                sent = self._socket.send(data)
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._wants_input = False
            except ssl.SSLWantReadError:
                self._wants_input = True
            else:
                return memoryview(data)[sent:] if sent < len(data) else b""
        return data

    def takes_now(self, size: int) -> bool:
        """Return True if the kernel has room for *size* bytes, so that `send` does not wait. Raises OSError."""
        unsent: int
        (unsent,) = struct.unpack("i", fcntl.ioctl(self._socket, termios.TIOCOUTQ, bytes(4)))
        return unsent + size <= _room(self._socket)

    def takes_when_idle(self, size: int) -> bool:
        """Return True if the kernel has room for *size* bytes while the other side has received all earlier ones."""
        return size <= self._least_room

    def receive(self, timeout_s: float) -> list[Frame]:
        """Return the frames that have arrived; wait for the first bytes for at most *timeout_s*."""
        data = self.receive_bytes(timeout_s)
        return self.frames(data) if data else []

    def receive_bytes(self, timeout_s: float) -> bytes:
        """Return the bytes that have arrived, for `frames`; wait for the first for at most *timeout_s*."""
        has_decrypted = self._tls is not None and self._tls.pending() > 0
        if not has_decrypted and not self._readable.poll(timeout_s * 1000 if timeout_s > 0 else 0):
            return b""
        with self._receive_guard:
            try:
                data = self._socket.recv(self._receive_size)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return b""
        if not data:
            raise ConnectionResetError("the other side has closed the connection")
        self._receive_size = _RECEIVE_BYTES if len(data) < _RECEIVE_BYTES else _RECEIVE_MANY_BYTES
        return data

    def frames(self, data: bytes) -> list[Frame]:
        """Return the frames that are whole with *data*, which `receive_bytes` has returned."""
        return self._buffer.take(data)

    @property
    def is_between_frames(self) -> bool:
        """Return True if no part of a frame has been received that is not whole yet."""
        return not self._buffer.rest

    def has_input(self) -> bool:
        """Return True if `receive` has bytes, or finds that the connection has ended."""
        return bool(self._readable.poll(0)) or (self._tls is not None and self._tls.pending() > 0)

    def has_decrypted(self) -> bool:
        """Return True if TLS has decrypted bytes that are not received yet, which no poll reports."""
        return self._tls is not None and self._tls.pending() > 0

    def end(self) -> None:
        """End the connection, so that another thread's `receive` or `send` raises."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection, also for a forked process. No other thread may use it any more."""
        self.end()
        self._socket.close()


def _room(connection: socket.socket) -> int:
    """Return the bytes that the kernel takes for *connection* until the other side receives some."""
    size: int = connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    return size // 2  # the other half is overhead


def _poll(connection: socket.socket, events: int) -> select.poll:
    made = select.poll()
    made.register(connection, events)
    return made
