"""A blocking client of the remoting protocol, for tests: it sends frames and reads answers on one connection."""

from __future__ import annotations

import itertools
import socket
import ssl
from types import TracebackType
from typing import Self

from tidemark.format.properties import encode_properties
from tidemark.remoting import Frame, RequestCode, decode, encode, split
from tidemark.remoting.codes import VERSION, Language, Serialization
from tidemark.remoting.frame import ONE_WAY, REQUEST
from tidemark.remoting.sending import SendAnswer, SendRequest, parse_send_answer, to_fields

TIMEOUT_S = 30.0


class RemotingClient:
    """One connection to 127.0.0.1:*port*. notices: requests of the server that came while an answer was awaited.

    fields: added to every request, such as a token.
    """

    def __init__(
        self, port: int, *, context: ssl.SSLContext | None = None, fields: dict[str, str] | None = None
    ) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.notices: list[Frame] = []
        self._fields = fields or {}
        self._opaque = itertools.count(1)
        self._received = b""
        self._frames: list[Frame] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def send(
        self,
        code: int,
        fields: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        one_way: bool = False,
        serialization: Serialization = Serialization.JSON,
        language: Language = Language.JAVA,
    ) -> int:
        """Send a request; return its opaque number."""
        opaque = next(self._opaque)
        flag = ONE_WAY if one_way else REQUEST
        all_fields = {**self._fields, **(fields or {})}
        self.socket.sendall(encode(Frame(code, flag, opaque, language, VERSION, "", all_fields, body, serialization)))
        return opaque

    def receive(self, timeout_s: float = TIMEOUT_S) -> Frame:
        """Return the next answer. Raises ConnectionError if the server closes, TimeoutError."""
        while True:
            frame = self.next_frame(timeout_s)
            if frame.is_answer:
                return frame
            self.notices.append(frame)

    def next_frame(self, timeout_s: float = TIMEOUT_S) -> Frame:
        """Return the next frame, an answer or a notice."""
        self.socket.settimeout(timeout_s)
        while not self._frames:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the server has closed the connection")
            self._received += data
            places, end = split(self._received)
            self._frames += [decode(self._received[start:stop]) for start, stop in places]
            self._received = self._received[end:]
        return self._frames.pop(0)

    def call(self, code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> Frame:
        """Send a request and return its answer."""
        opaque = self.send(code, fields, body)
        answer = self.receive()
        assert answer.opaque == opaque
        return answer

    def call_message(self, topic: str, body: bytes, **changed: object) -> Frame:
        """Send one message as Java's producer does, and return the answer. changed: attributes of SendRequest."""
        properties = changed.pop("properties", {})
        assert isinstance(properties, dict)
        asked = SendRequest("producers", topic, 0, 0, 1_000, 0, properties=encode_properties(properties).decode())
        asked = asked._replace(**changed)  # type: ignore[arg-type]
        return self.call(RequestCode.SEND_MESSAGE_V2, to_fields(RequestCode.SEND_MESSAGE_V2, asked), body)

    def send_message(self, topic: str, body: bytes, **changed: object) -> SendAnswer:
        """Send one message; return the values of the answer, which must be a success."""
        answer = self.call_message(topic, body, **changed)
        assert answer.code == 0, (answer.code, answer.remark)
        return parse_send_answer(answer.fields)
