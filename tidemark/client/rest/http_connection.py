"""HttpConnection: one HTTP/1.1 connection, a request at a time; httptools parses the heads of the answers.

http.client takes a tenth of a millisecond for the head of an answer, which is longer than a lookup.
"""

from __future__ import annotations

import contextlib
import functools
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from http import HTTPStatus

import httptools

_MOST_HEAD_BYTES = 64 << 10
_READ_BYTES = 16 << 10
_WORTH_A_LEASE = 128 << 10  # bytes of a body; for smaller ones a new buffer costs nothing
_PIECE = 256 << 10
_WORTH_WAITING_FOR = 4 * _PIECE
_DEFAULT_PORTS = {False: 80, True: 443}  # with TLS
_ILLEGAL_IN_TARGET = re.compile(r"[^\x21-\x7e]")
_ILLEGAL_IN_HEADER = re.compile(r"[\r\n\0]")


class HttpFaultError(Exception):
    """The received bytes are not an HTTP answer, or the answer ended early."""


class HttpConnection:
    """A connection, made at the first request. timeout_s: limit for each wait. context: None without TLS.

    All methods raise OSError for a failing connection. After an error, only `close` is allowed.
    """

    def __init__(self, host: str, port: int | None, *, timeout_s: float, context: ssl.SSLContext | None = None) -> None:
        default = _DEFAULT_PORTS[context is not None]
        self._address = (host, port or default)
        self._timeout_s = timeout_s
        self._context = context
        bracketed = f"[{host}]" if ":" in host else host
        self._host = bracketed if port in (None, default) else f"{bracketed}:{port}"
        self.sock: socket.socket | None = None

    def request(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> None:
        """Send a request. Raises ValueError for characters that *target* and *headers* must not have."""
        if _ILLEGAL_IN_TARGET.search(target):
            raise ValueError(f"the path {target!r} has characters that must be percent-encoded")
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self._host}", "Accept-Encoding: identity"]
        for name, value in headers.items():
            if _ILLEGAL_IN_HEADER.search(value):
                raise ValueError(f"the header {name} has a line end or a zero byte")
            lines.append(f"{name}: {value}")
        if body is not None or method != "GET":
            lines.append(f"Content-Length: {len(body or b'')}")
        head = "\r\n".join([*lines, "\r\n"]).encode("latin-1")
        if self.sock is None:
            self.sock = self._connect()
        self.sock.sendall(head if body is None else head + body)

    def _connect(self) -> socket.socket:
        sock = socket.create_connection(self._address, self._timeout_s)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock if self._context is None else self._context.wrap_socket(sock, server_hostname=self._address[0])
        except BaseException:
            sock.close()
            raise

    def response(self) -> HttpResponse:
        """Wait for the head of the answer. Raises HttpFaultError, or ConnectionResetError if there is no answer."""
        if self.sock is None:
            raise ConnectionResetError("the connection is closed")
        return HttpResponse(self.sock)

    def close(self) -> None:
        """Close the connection; unread data is lost."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None


class HttpResponse:
    """An answer, whose head is complete.

    headers     names as in ``Content-Type``; the values of a repeated header are joined by a comma
    will_close  the connection cannot be used again
    """

    def __init__(self, sock: socket.socket) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.will_close = True
        self._sock = sock
        self._pieces: list[bytes] = []  # of the body, as parsed
        self._has_head = self._is_complete = False
        self._parser = httptools.HttpResponseParser(self)
        self._read_head()

    def _read_head(self) -> None:
        size = 0
        while not self._has_head:
            received = len(self._receive())
            if received == 0:
                if size == 0:
                    raise ConnectionResetError("the connection was closed without an answer")
                raise HttpFaultError("the answer ended in its head")
            size += received
            if size > _MOST_HEAD_BYTES and not self._has_head:
                raise HttpFaultError(f"the head of the answer is larger than {_MOST_HEAD_BYTES} bytes")

    def read(self) -> memoryview:
        """Return the body, once; if its length is known, in memory that is reused once it has no references.

        Raises HttpFaultError for a body that is malformed or ends early.
        """
        try:
            return self._read()
        finally:
            del self._parser, self._pieces  # the parser refers to this object

    def _read(self) -> memoryview:
        length = self._length()
        if length is not None and not self._is_complete:
            return self._read_known(length)
        while not self._is_complete and self._receive():
            pass
        if not self._is_complete and "Transfer-Encoding" in self.headers:
            raise HttpFaultError("the answer ended before its last chunk")
        return memoryview(bytearray().join(self._pieces))

    def _length(self) -> int | None:
        if "Transfer-Encoding" in self.headers or "Content-Length" not in self.headers:
            return None
        return int(self.headers["Content-Length"])  # the parser has accepted it

    def _read_known(self, length: int) -> memoryview:
        """Return the body of *length* bytes: the parsed pieces, and the rest directly from the socket."""
        body = _room(length)
        at = 0
        for piece in self._pieces:
            body[at : at + len(piece)] = piece
            at += len(piece)
        if length >= _WORTH_WAITING_FOR:
            with _woken_for(_PIECE, self._sock):
                while length - at >= 2 * _PIECE:  # so that a complete piece always follows
                    at += self._receive_into(body, at)
        while at < length:
            at += self._receive_into(body, at)
        return body

    def _receive_into(self, body: memoryview, at: int) -> int:
        size = self._sock.recv_into(body[at:])
        if size == 0:
            raise HttpFaultError(f"the answer ended after {at} of {len(body)} bytes")
        return size

    def _receive(self) -> bytes:
        """Receive and parse more bytes; none at the end of the connection."""
        data = self._sock.recv(_READ_BYTES)
        if data:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade:
                raise HttpFaultError("the answer changes the protocol") from None
            except httptools.HttpParserError as error:
                if not self._is_complete:  # the bytes after the answer count for `will_close` only
                    raise HttpFaultError(f"this is not an HTTP answer: {error}") from error
        return data

    # -- called by the parser; after the end of the answer for bytes that belong to none ---------------------------

    def on_message_begin(self) -> None:
        """Accept the answer, or an interim one before it."""
        self.will_close = self._is_complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        if not self._is_complete:
            known, text = _header_name(name), value.decode("latin-1")
            self.headers[known] = f"{self.headers[known]}, {text}" if known in self.headers else text

    def on_headers_complete(self) -> None:
        """Note the status."""
        if not self._is_complete:
            self.status = self._parser.get_status_code()
            self._has_head = self.status >= HTTPStatus.OK
            self.will_close = not self._parser.should_keep_alive()

    def on_body(self, piece: bytes) -> None:
        """Keep a piece of the body."""
        if not self._is_complete:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """Note the end; an interim answer is dropped."""
        self._is_complete = self._has_head
        if not self._has_head:
            self.headers.clear()


@functools.lru_cache(maxsize=256)
def _header_name(raw: bytes) -> str:
    """b"content-type" → "Content-Type"."""
    return raw.decode("latin-1").title()


def _room(size: int) -> memoryview:
    if size < _WORTH_A_LEASE:
        return memoryview(bytearray(size))
    try:
        from tidemark.read.buffers import POOL
    except ImportError:  # a client without numpy
        return memoryview(bytearray(size))
    return POOL.lend(size).data


@contextlib.contextmanager
def _woken_for(size: int, sock: socket.socket) -> Iterator[None]:
    """Wake a thread that waits for *sock* only after *size* bytes: a wake-up per packet costs more than the copy."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
    try:
        yield
    finally:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
