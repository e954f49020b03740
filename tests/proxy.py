"""A TCP proxy in the test's process that cuts, stalls or counts the forwarded bytes."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

_PIECE = 64 << 10
_CONNECT_S = 10.0


class Proxy:
    """Forwards connections to 127.0.0.1:*target*, which may be set later.

    accepted   number of connections so far
    forwarded  bytes from clients so far
    """

    def __init__(self, target: int = 0) -> None:
        self.target = target
        self.accepted = self.forwarded = 0
        self.is_refusing = False  # new connections are closed at once
        self._flowing = threading.Event()
        self._flowing.set()
        self._cut_after: int | None = None
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, name="proxy", daemon=True)

    @property
    def address(self) -> str:
        """Return host:port for clients."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Accept no more connections, and cut the others."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._accepting.join()
        self._flowing.set()
        self.cut()
        for thread in self._threads:
            thread.join()
        for one in self._sockets:
            one.close()

    def cut(self) -> None:
        """Close all connections."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for one in (one for pair in pairs for one in pair):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def cut_after(self, size: int) -> None:
        """Close all connections after *size* more bytes of clients, which may be in the middle of a frame."""
        self._cut_after = self.forwarded + size

    def stall(self) -> None:
        """Stop forwarding; the kernel still takes what fits into its buffers."""
        self._flowing.clear()

    def flow(self) -> None:
        """Forward again."""
        self._flowing.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self.accepted += 1
            if self.is_refusing:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target), _CONNECT_S)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._pairs.append((client, server))
            self._sockets += (client, server)
            for direction in ((client, server, True), (server, client, False)):
                thread = threading.Thread(target=self._forward, args=direction, name="proxy", daemon=True)
                thread.start()
                self._threads.append(thread)

    def _forward(self, source: socket.socket, sink: socket.socket, counts: bool) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._flowing.wait()
                data = source.recv(_PIECE)
                self._flowing.wait()
                if not data:
                    break
                sink.sendall(self._counted(data) if counts else data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _counted(self, data: bytes) -> bytes:
        """Count *data*; return the part before a cut."""
        cut_at = self._cut_after
        if cut_at is not None and self.forwarded + len(data) >= cut_at:
            data = data[: cut_at - self.forwarded]
            self._cut_after = None
            threading.Timer(0.02, self.cut).start()
        self.forwarded += len(data)
        return data
