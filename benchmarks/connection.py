"""A keep-alive connection to an HTTP service that costs the client as little as possible."""

from __future__ import annotations

import contextlib
import socket
from types import TracebackType

_HEAD_END, _LENGTH = b"\r\n\r\n", b"content-length: "
_LEAST_ROOM = 1 << 16


class Connection(contextlib.AbstractContextManager["Connection"]):
    """A connection to *address* (host:port) with one request at a time, for answers that have a content-length."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._room = bytearray(_LEAST_ROOM)  # for all answers, because new memory would cost page faults
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        """Return the descriptor, which becomes readable with an answer."""
        return self._socket.fileno()

    def get(self, path: str, accept: str = "*/*") -> memoryview:
        """Return the body of the answer, which is valid until the next answer. Raises as `answer`."""
        self.ask(path, accept)
        return self.answer()

    def ask(self, path: str, accept: str = "*/*") -> None:
        """Send a request. The next call must be `answer`."""
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n".encode())

    def answer(self) -> memoryview:
        """Return the body of the answer, which is valid until the next answer.

        Raises:
            RuntimeError: the status is not 200, or the server closed the connection.
        """
        received = 0
        while (end := self._room.find(_HEAD_END, 0, received)) < 0:
            received = self._receive(received)
        body_at = end + len(_HEAD_END)
        length_at = self._room.index(_LENGTH, 0, end) + len(_LENGTH)
        answer_end = body_at + int(self._room[length_at : self._room.index(b"\r", length_at)])
        if answer_end > len(self._room):
            self._room = self._room + bytes(answer_end - len(self._room))  # a caller may still view the old one
        while received < answer_end:
            received = self._receive(received)
        if not self._room.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"expected an answer with status 200: {bytes(self._room[:answer_end])!r}")
        return memoryview(self._room).toreadonly()[body_at:answer_end]

    def _receive(self, at: int) -> int:
        """Receive bytes to position *at*, and return the position after them."""
        with memoryview(self._room) as room:
            count = self._socket.recv_into(room[at:])
        if not count:
            raise RuntimeError("the server closed the connection")
        return at + count

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
