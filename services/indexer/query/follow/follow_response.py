"""FollowResponse: sends a follower's answer piece by piece until its end, or until the client is gone."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..state.departure import departure_of
from ..web.chunked_response import Pieces
from .follower import Follower

_HEADERS = {
    "Cache-Control": "no-store",
    "Vary": "Accept",
    "X-Accel-Buffering": "no",  # a proxy that knows this header passes each piece on at once
}


class FollowResponse(Response):
    """A 200 response without a length.

    Args:
        place: counts the request among the waiting ones until its end.
    """

    def __init__(self, follower: Follower, media_type: str, place: AbstractContextManager[None]) -> None:
        super().__init__(None, 200, _HEADERS, media_type)
        del self.headers["content-length"]
        self._follower = follower
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response. A client that reads too slowly is disconnected, or its answer ends early."""
        departure = departure_of(scope)
        departure.add(self._follower.leave)
        try:
            with self._place:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                async with contextlib.aclosing(self._follower.pieces()) as answer:
                    async for pieces in answer:
                        await self._send(pieces, send)
                await send({"type": "http.response.body", "body": b""})
        finally:
            departure.discard(self._follower.leave)
            self._follower.release()

    @staticmethod
    async def _send(pieces: Pieces, send: Send) -> None:
        body = b"".join(pieces)
        pieces.clear()  # from here on the server holds the bytes
        if body:
            await send({"type": "http.response.body", "body": body, "more_body": True})
            del body
            await send({"type": "http.response.body", "body": b"", "more_body": True})  # waits for a slow client
