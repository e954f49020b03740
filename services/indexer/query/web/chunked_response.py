"""A response whose body is a list of buffers and of ranges of files, which are sent without a copy of large ones.

Each send passes through every layer of the server. Therefore small buffers are sent several at once where the
connection can do that (`SEND_PIECES`), and joined elsewhere.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidemark.read.file_run import FileRange

from ..state.unsent_bytes_limit import UnsentBytesLimit
from .file_sending import SEND_FILES

Pieces = list[bytes | memoryview]
Piece = bytes | memoryview | FileRange
SEND_PIECES = "tidemark.send_pieces"  # async (Pieces) -> None, after `http.response.start` with a content-length
_LITTLE_BYTES, _GROUP_BYTES = 64 << 10, 256 << 10
_TINY_BYTES = 4 << 10  # a copy costs less than a buffer of its own


class PiecesResponse(Response):
    """A 200 response with *pieces* as its body.

    answers     accounts for the bytes in memory that are not sent yet
    joins_now   False: small pieces stay as they are until they are sent. Otherwise they are joined, because a piece
                can be a part of a larger buffer, which would stay in memory as long
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        headers: Mapping[str, str],
        media_type: str,
        answers: UnsentBytesLimit,
        *,
        joins_now: bool = True,
    ) -> None:
        self._size = sum(map(len, pieces))
        super().__init__(None, 200, {**headers, "Content-Length": str(self._size)}, media_type)
        self._pieces = _joined_between_files(pieces) if joins_now else list(pieces)
        self._in_memory = sum(len(piece) for piece in pieces if not isinstance(piece, FileRange))
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response. Raises InFlightLimitError before it begins if too many bytes are not sent yet."""
        if self._size > _LITTLE_BYTES or self._in_memory < self._size:
            with self._answers.held(self._in_memory):
                await self._send(scope, send)
                await send({"type": "http.response.body"})  # returns after nearly all bytes are in the socket
        else:
            await self._start(send)
            await send({"type": "http.response.body", "body": _joined([*_taken(self._pieces)])})

    async def _start(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})

    async def _send(self, scope: Scope, send: Send) -> None:
        await self._start(send)
        extensions = scope.get("extensions", {})
        send_files, send_pieces = extensions.get(SEND_FILES), extensions.get(SEND_PIECES)
        for are_files, pieces in itertools.groupby(_taken(self._pieces), lambda piece: isinstance(piece, FileRange)):
            if not are_files:
                for group in _groups(pieces):
                    if send_pieces is None or len(group) == 1:
                        await send({"type": "http.response.body", "body": _joined(group), "more_body": True})
                    else:
                        await send_pieces(group)
            elif send_files is not None:
                await send_files(list(pieces))
            else:
                for piece in pieces:
                    body = await asyncio.to_thread(piece.read)
                    await send({"type": "http.response.body", "body": body, "more_body": True})


def _joined_between_files(pieces: Sequence[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for are_files, some in itertools.groupby(pieces, lambda piece: isinstance(piece, FileRange)):
        run: list[Any] = list(some)
        joined += run if are_files else map(_joined, _groups(run))
    return joined


def _taken(pieces: list[Piece]) -> Iterator[Any]:
    """Take *pieces* one by one, so that the memory of those that are sent is free."""
    pieces.reverse()
    while pieces:
        yield pieces.pop()


def _groups(pieces: Iterable[bytes | memoryview]) -> Iterator[Pieces]:
    """Yield groups of consecutive pieces to send at once. A large piece is alone; tiny ones are joined."""
    group: Pieces = []
    size = 0
    for piece in pieces:
        if group and (len(piece) > _LITTLE_BYTES or size + len(piece) > _GROUP_BYTES):
            yield _with_tiny_ones_joined(group)
            group, size = [], 0
        if len(piece) > _LITTLE_BYTES:
            yield [piece]
        elif piece:
            group.append(piece)
            size += len(piece)
    if group:
        yield _with_tiny_ones_joined(group)


def _with_tiny_ones_joined(pieces: Pieces) -> Pieces:
    joined: Pieces = []
    for are_tiny, some in itertools.groupby(pieces, lambda piece: len(piece) <= _TINY_BYTES):
        run = list(some)
        joined += [b"".join(run)] if are_tiny else run
    return joined


def _joined(pieces: Pieces) -> bytes | memoryview:
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
