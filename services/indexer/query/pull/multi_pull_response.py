"""The answers of many queues in one response: a JSON document, or one MIME part per queue (RFC 2046)."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Sequence

import orjson
from starlette.responses import Response

from tidemark.errors import StoreError

from ..state.service_state import ServiceState
from ..web.chunked_response import Piece, PiecesResponse
from ..web.problems import MEDIA_TYPE, of_store_error
from .answer_form import BodyFormat
from .pull_response import PullBody

_HEADERS = {"Cache-Control": "no-store", "Vary": "Accept"}


def response_of(parts: Sequence[PullBody], looked_at: int, body_format: BodyFormat, state: ServiceState) -> Response:
    """Return the whole response."""
    if body_format is BodyFormat.JSON:
        pieces = _document(parts, looked_at, state.settings.store_name)
        return PiecesResponse(pieces, _HEADERS, BodyFormat.JSON.value, state.answers)
    headers = {**_HEADERS, "Tidemark-Store": state.settings.store_name, "Tidemark-Looked-At": str(looked_at)}
    if not parts:
        return Response(None, 204, headers)  # a multipart body needs at least one part
    boundary = secrets.token_hex(16)
    return PiecesResponse(
        _multipart(parts, boundary),
        headers,
        f"multipart/mixed; boundary={boundary}",
        state.answers,
        joins_now=body_format is not BodyFormat.RECORDS,
    )


def refused_part(error: StoreError, topic: str, queue_id: int) -> PullBody:
    """Return a queue's error as a problem that names the queue."""
    response = of_store_error(error, topic=topic, queue_id=queue_id)
    headers = {"Tidemark-Topic": topic, "Tidemark-Queue-Id": str(queue_id)}
    return PullBody(MEDIA_TYPE, headers, [bytes(response.body)])


def _document(parts: Sequence[PullBody], looked_at: int, store: str) -> list[Piece]:
    head = orjson.dumps({"store": store, "looked_at": looked_at})
    pieces: list[Piece] = [head[:-1] + b',"answers":[']
    for number, part in enumerate(parts):
        pieces += [b"," if number else b"", *part.pieces]
    return [*pieces, b"]}\n"]


def _multipart(parts: Sequence[PullBody], boundary: str) -> list[Piece]:
    pieces: list[Piece] = []
    for part in parts:
        head = _head(tuple(part.headers)) % (boundary, part.media_type, part.size, *part.headers.values())
        pieces.append(head.encode())
        pieces += part.pieces
    return [*pieces, f"\r\n--{boundary}--\r\n".encode()]


@functools.lru_cache(maxsize=16)
def _head(names: tuple[str, ...]) -> str:
    """Return the head of a part whose own headers have *names*, with a %s for each value."""
    lines = ["\r\n--%s", "Content-Type: %s", "Content-Length: %s", *(f"{name}: %s" for name in names), "", ""]
    return "\r\n".join(lines)
