"""Plain sockets to `benchmarks.bare_log`: the least that a client in Python does for a message."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

from benchmarks.bare_log import APPEND, HEAD, SUBSCRIBE
from benchmarks.peers.python.load import Load
from benchmarks.peers.python.protocol import RECEIVE_S, Addresses

_LENGTH = struct.Struct(">I")
_BATCH_BYTES = 128 << 10
_MOST_UNANSWERED = 8  # batches


class Bare:
    """A connection that sends, and one that subscribes."""

    def __init__(self, addresses: Addresses, load: Load) -> None:
        self._address = addresses["bare"]
        self._socket = self._connect()
        self._may_batch = load.may_batch
        self._held: list[bytes] = []
        self._held_bytes = self._unanswered = 0
        self._subscription: socket.socket | None = None
        self._rest = b""

    def _connect(self) -> socket.socket:
        host, _, port = self._address.partition(":")
        connection = socket.create_connection((host, int(port)))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def send(self, body: bytes) -> None:
        self._hold(body)
        self.finish()

    def begin(self, body: bytes) -> None:
        self._hold(body)
        if not self._may_batch or self._held_bytes >= _BATCH_BYTES:
            self.push()

    def _hold(self, body: bytes) -> None:
        self._held += (_LENGTH.pack(len(body)), body)
        self._held_bytes += _LENGTH.size + len(body)

    def push(self) -> None:
        if self._held:
            self._socket.sendall(b"".join((HEAD.pack(APPEND, self._held_bytes), *self._held)))
            self._held, self._held_bytes = [], 0
            self._unanswered += 1
            self._await_answers(_MOST_UNANSWERED)

    def _await_answers(self, most: int) -> None:
        """Wait until at most *most* batches are unanswered."""
        while self._unanswered > most:
            answers = self._socket.recv((self._unanswered - most) * HEAD.size)
            if not answers:
                raise ConnectionResetError("the server has closed the connection")
            answers += self._rest_of(answers)
            self._unanswered -= len(answers) // HEAD.size

    def _rest_of(self, answers: bytes) -> bytes:
        missing = -len(answers) % HEAD.size
        return self._socket.recv(missing, socket.MSG_WAITALL) if missing else b""

    def finish(self) -> None:
        self.push()
        self._await_answers(0)

    def rewind(self) -> None:
        self._subscription = self._connect()
        self._subscription.sendall(HEAD.pack(SUBSCRIBE, 0))
        self._subscription.settimeout(RECEIVE_S)

    def receive(self) -> Sequence[bytes]:
        assert self._subscription is not None, "since `rewind`"
        try:
            data = self._rest + self._subscription.recv(1 << 20)
        except TimeoutError:
            return []
        bodies: list[bytes] = []
        at = 0
        while len(data) - at >= HEAD.size:
            _, length = HEAD.unpack_from(data, at)
            place, end = at + HEAD.size, at + HEAD.size + length
            if end > len(data):
                break
            while place < end:
                (size,) = _LENGTH.unpack_from(data, place)
                bodies.append(data[place + _LENGTH.size : place + _LENGTH.size + size])
                place += _LENGTH.size + size
            at = end
        self._rest = data[at:]
        return bodies

    def close(self) -> None:
        for connection in (self._socket, self._subscription):
            if connection is not None:
                connection.close()
