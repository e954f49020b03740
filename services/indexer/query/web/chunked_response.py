"""A response whose body is a list of buffers and of ranges of files. Large ones are sent as they are, without a copy.

Small buffers are joined, because each send passes through every layer of the server, which costs more than a copy.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping, Sequence

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidemark.read.file_run import FileRange

from ..state.unsent_bytes_limit import UnsentBytesLimit
from .file_sending import SEND_FILES

Pieces = list[bytes | memoryview]
Piece = bytes | memoryview | FileRange
_LITTLE_BYTES, _JOINED_BYTES = 64 << 10, 256 << 10


class PiecesResponse(Response):
    """A 200 response with *pieces* as its body.

    answers: accounts for the bytes in memory that are not sent yet
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        headers: Mapping[str, str],
        media_type: str,
        answers: UnsentBytesLimit,
    ) -> None:
        self._size = sum(map(len, pieces))
        super().__init__(None, 200, {**headers, "Content-Length": str(self._size)}, media_type)
        self._pieces = _with_little_ones_joined(pieces)
        self._in_memory = sum(len(piece) for piece in self._pieces if not isinstance(piece, FileRange))
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response. Raises InFlightLimitError before it begins if too many bytes are not sent yet."""
        if self._size > _LITTLE_BYTES or self._in_memory < self._size:
            with self._answers.held(self._in_memory):
                await self._send(scope, send)
                await send({"type": "http.response.body"})  # returns after nearly all bytes are in the socket
        else:
            await self._start(send)
            await send({"type": "http.response.body", "body": self._pieces[0] if self._pieces else b""})

    async def _start(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})

    async def _send(self, scope: Scope, send: Send) -> None:
        await self._start(send)
        send_files = scope.get("extensions", {}).get(SEND_FILES)
        for are_files, pieces in itertools.groupby(_taken(self._pieces), lambda piece: isinstance(piece, FileRange)):
            if are_files and send_files is not None:
                await send_files(list(pieces))
                continue
            for piece in pieces:
                body = await asyncio.to_thread(piece.read) if isinstance(piece, FileRange) else piece
                await send({"type": "http.response.body", "body": body, "more_body": True})


def _taken(pieces: list[Piece]) -> Iterator[Piece]:
    """Take *pieces* one by one, so that the memory of those that are sent is free."""
    while pieces:
        yield pieces.pop(0)


def _with_little_ones_joined(pieces: Sequence[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    little: Pieces = []
    size = 0
    for piece in pieces:
        if isinstance(piece, FileRange) or len(piece) > _LITTLE_BYTES or size + len(piece) > _JOINED_BYTES:
            if little:
                joined.append(b"".join(little))
            little, size = [], 0
        if isinstance(piece, FileRange) or len(piece) > _LITTLE_BYTES:
            joined.append(piece)
        else:
            little.append(piece)
            size += len(piece)
    return [*joined, b"".join(little)] if little else joined
