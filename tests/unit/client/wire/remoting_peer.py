"""A server of remoting frames in this process, whose answers a test decides."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from tests.unit.client.fake_writer import FakeWriter
from tidemark.remoting.codes import ResponseCode
from tidemark.remoting.frame import Frame, answer_to
from tidemark.remoting.frame_buffer import FrameBuffer
from tidemark.remoting.framing import encode
from tidemark.remoting.refusal import FACTS, REASON
from tidemark.v1.commit_log_pb2 import AppendStreamRequest, AppendStreamResponse

Answer = Callable[[Frame], Frame | bytes | None]
"""Returns an answer, bytes to send instead of one, or None for no answer. It may raise to close the connection."""


class EndError(Exception):
    """Closes the connection instead of an answer."""


class RemotingPeer:
    """The listening side. frames: all requests so far; accepted: number of connections so far."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.frames: list[Frame] = []
        self.accepted = 0
        self.connections: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Accept no more connections, and end the others."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        self.end_connections()

    def end_connections(self) -> None:
        """End all connections, as a server ends idle ones."""
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.accepted += 1
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        buffer = FrameBuffer((1 << 31) - 1)
        with connection, contextlib.suppress(OSError, EndError):
            while data := connection.recv(1 << 16):
                for frame in buffer.take(data):
                    self.frames.append(frame)
                    answer = self.answer(frame)
                    if answer is not None:
                        connection.sendall(encode(answer) if isinstance(answer, Frame) else answer)


def appending(writer: FakeWriter) -> Answer:
    """Return a function that appends to *writer*, as its gRPC stream does."""

    def answer(frame: Frame) -> Frame:
        entries = AppendStreamRequest.FromString(bytes(frame.body)).batches
        results = [writer.on_entry(entry) or writer._append(entry) for entry in entries]
        return answer_to(frame, 0, body=AppendStreamResponse(results=results).SerializeToString())

    return answer


@contextlib.contextmanager
def peer(answer: Answer) -> Iterator[RemotingPeer]:
    """Serve within the block."""
    made = RemotingPeer(answer)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def end(_: Frame) -> None:
    raise EndError


FAULTS: dict[str, Answer] = {
    "the end": end,
    "GO_AWAY": lambda frame: answer_to(frame, ResponseCode.GO_AWAY, "the service is stopping"),
    "bytes that are no frame": lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "a body that is no message": lambda frame: answer_to(frame, 0, body=b"\xff\xff\xff"),
    "facts that are no JSON": lambda frame: answer_to(frame, 1, "no", {REASON: "INTERNAL", FACTS: "{"}),
}
