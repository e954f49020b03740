"""A response whose body is a list of buffers. Large buffers are sent as they are, without a copy.

Small buffers are joined, because each send passes through every layer of the server, which costs more than a copy.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..state.unsent_bytes_limit import UnsentBytesLimit

Pieces = list[bytes | memoryview]
_LITTLE_BYTES, _JOINED_BYTES = 64 << 10, 256 << 10


class PiecesResponse(Response):
    """A 200 response with *pieces* as its body. answers: accounts for response bytes that are not sent yet."""

    def __init__(self, pieces: Pieces, headers: Mapping[str, str], media_type: str, answers: UnsentBytesLimit) -> None:
        self._size = sum(map(len, pieces))
        super().__init__(None, 200, {**headers, "Content-Length": str(self._size)}, media_type)
        self._pieces = _with_little_ones_joined(pieces)
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response. Raises InFlightLimitError before it begins if too many bytes are not sent yet."""
        if self._size > _LITTLE_BYTES:
            with self._answers.held(self._size):
                await self._send(send)
                await send({"type": "http.response.body"})  # returns after nearly all bytes are in the socket
        else:
            await self._start(send)
            await send({"type": "http.response.body", "body": self._pieces[0] if self._pieces else b""})

    async def _start(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})

    async def _send(self, send: Send) -> None:
        await self._start(send)
        while self._pieces:
            await send({"type": "http.response.body", "body": self._pieces.pop(0), "more_body": True})


def _with_little_ones_joined(pieces: Pieces) -> Pieces:
    joined: Pieces = []
    little: Pieces = []
    size = 0
    for piece in pieces:
        if little and (len(piece) > _LITTLE_BYTES or size + len(piece) > _JOINED_BYTES):
            joined.append(b"".join(little))
            little, size = [], 0
        if len(piece) > _LITTLE_BYTES:
            joined.append(piece)
        else:
            little.append(piece)
            size += len(piece)
    return [*joined, b"".join(little)] if little else joined
