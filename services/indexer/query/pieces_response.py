"""A response whose body is a row of buffers: each goes to the socket as it is, none is copied to join them.

Unless all of them are little: each is a turn through every layer of the server, which costs more than the copy.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

Pieces = list[bytes | memoryview]
_LITTLE_BYTES = 64 << 10


class PiecesResponse(Response):
    """200 with the *pieces* one after the other."""

    def __init__(self, pieces: Pieces, headers: Mapping[str, str], media_type: str) -> None:
        super().__init__(None, 200, headers, media_type)
        size = sum(map(len, pieces))
        self.headers["content-length"] = str(size)
        self._pieces = pieces if size > _LITTLE_BYTES else [b"".join(pieces)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        last = len(self._pieces) - 1
        for i, piece in enumerate(self._pieces):
            await send({"type": "http.response.body", "body": piece, "more_body": i < last})
