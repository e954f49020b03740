"""A pull's answer in the format that the client accepts: JSON, NDJSON, an Arrow stream, or the records as stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
from starlette.responses import Response

from tidemark.read.messages.arrow_stream import arrow_stream
from tidemark.read.messages.body import BodyEncoding, BodyRoom
from tidemark.read.messages.message_json import message_json
from tidemark.read.pull import PullResult, PullStatus
from tidemark.read.records import Skipped

from ..queue_allocation import Queue
from ..schema.position import position_json
from ..state.service_state import ServiceState
from ..web.chunked_response import Piece, Pieces, PiecesResponse
from .answer_form import AnswerForm, BodyFormat
from .pulled import Pulled

_NOT_STORED, _JSON = (b"cache-control", b"no-store"), (b"content-type", BodyFormat.JSON.value.encode())
_STATUS_TEXTS = {
    PullStatus.FOUND: "messages from the requested offset on",
    PullStatus.NO_MATCHED_MESSAGE: "no message with these tags among those that were read; continue at next_offset",
    PullStatus.OFFSET_OVERFLOW_ONE: "the queue has no further message yet",
    PullStatus.NO_MESSAGE_IN_QUEUE: "the queue has no message yet",
    PullStatus.MESSAGE_WAS_REMOVING: "the message's log file is deleted; continue at next_offset",
    PullStatus.OFFSET_FOUND_NULL: "the queue has no entry at this offset; continue at next_offset",
    PullStatus.NO_MATCHED_LOGIC_QUEUE: "the topic has no such queue",
    PullStatus.OFFSET_TOO_SMALL: "the offset is below the queue's minimum; continue at next_offset",
    PullStatus.OFFSET_OVERFLOW_BADLY: "the offset is above the queue's end; continue at next_offset",
}


class _JsonResponse(Response):
    """A response with the headers of every JSON answer, which starlette would assemble again each time."""

    def __init__(self, body: bytes, status: int) -> None:
        self.status_code = status
        self.background = None
        self.body = body
        self.raw_headers = [_NOT_STORED, (b"content-length", b"%d" % len(body)), _JSON]


def json_response(content: Any, status: int = 200) -> Response:
    """Return *content* as a JSON response."""
    return _JsonResponse(orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE), status)


def skipped_json(skipped: list[Skipped]) -> list[dict[str, Any]]:
    """Return skipped records and units as SkippedAnswer describes them."""
    return [skip._asdict() for skip in skipped]


def body_room(state: ServiceState, pulled: Pulled) -> BodyRoom:
    """Return the limit on the decompressed bodies of a read. A single message that exceeds it stays compressed."""
    is_single = pulled.result.message_count <= 1 or pulled.limits.max_messages <= 1
    return BodyRoom(state.settings.query_max_body_bytes, keep_rest_stored=is_single)


def note_skipped(state: ServiceState, queue: Queue, skipped: list[Skipped]) -> None:
    """Count the messages that a read has skipped, and keep their places on record."""
    if skipped:
        state.metrics.skipped.inc(sum(skip.message_count for skip in skipped))
        state.lost_units.note(*queue, skipped)


class PullBody(NamedTuple):
    """The body of the answer to a pull from one queue."""

    media_type: str
    headers: dict[str, str]
    pieces: Sequence[Piece]

    @property
    def size(self) -> int:
        """Size of the body in bytes."""
        return sum(map(len, self.pieces))


class PullAnswerer:
    """Makes the answers to pulls from one queue."""

    def __init__(self, state: ServiceState, topic: str, queue_id: int) -> None:
        self._state = state
        self._topic = topic
        self._queue_id = queue_id

    def response(self, pulled: Pulled, form: AnswerForm) -> Response:
        """Return the whole response. Raises as `body`."""
        body = self.body(pulled, form, json_end=b"\n")
        headers = {"Cache-Control": "no-store", "Vary": "Accept", **body.headers}
        return PiecesResponse(body.pieces, headers, body.media_type, self._state.answers)

    def body(self, pulled: Pulled, form: AnswerForm, *, json_end: bytes = b"") -> PullBody:
        """Return the body of the answer. json_end: bytes after a JSON document.

        Raises:
            AnswerFullError: the decompressed bodies exceed query_max_body_bytes, and fewer messages may fit.
        """
        pieces: Sequence[Piece]
        as_broker, encoding = pulled.limits.as_broker, form.body_encoding
        headers: dict[str, str] = {}
        if form.body_format is not BodyFormat.JSON:
            facts = self._facts(pulled)
            headers = dict(zip(_HEADERS, facts, strict=True))
        match form.body_format:
            case BodyFormat.JSON:
                room = body_room(self._state, pulled)
                pieces = [*self._json(pulled, _rows(pulled, encoding, b",", as_broker, room)), json_end]
            case BodyFormat.NDJSON:
                pieces = _rows(pulled, encoding, b"\n", as_broker, body_room(self._state, pulled))
            case BodyFormat.ARROW:
                room = body_room(self._state, pulled)
                metadata = dict(zip(_FACTS, facts, strict=True))
                pieces = arrow_stream(pulled.result.parts, metadata, form.table, room=room)
            case BodyFormat.RECORDS:
                pieces = pulled.result.stored or _stored_records(pulled)
        body = PullBody(form.body_format.value, headers, pieces)
        self._count(body.size, form.body_format.name.lower(), pulled.result)
        return body

    def records(self, pulled: Pulled) -> Pieces:
        """Return the records as stored, without the facts of the pull."""
        pieces = _stored_records(pulled)
        self._count(sum(map(len, pieces)), "records", pulled.result)
        return pieces

    def _count(self, size: int, format_label: str, result: PullResult) -> None:
        metrics = self._state.metrics
        if result.message_count:
            metrics.given.add(self._topic, result.message_count, size)
        metrics.body_bytes(format_label).inc(size)
        note_skipped(self._state, Queue(self._topic, self._queue_id), result.skipped)

    def _json(self, pulled: Pulled, rows: Pieces) -> Pieces:
        result = pulled.result
        head = orjson.dumps(
            {
                "store": self._state.settings.store_name,
                "topic": self._topic,
                "queue_id": self._queue_id,
                "status": result.status.value,
                "status_text": _STATUS_TEXTS[result.status],
                "requested_offset": pulled.requested_offset,
                "next_offset": result.next_offset,
                "min_offset": result.bounds.min_offset,
                "max_offset": result.bounds.max_offset,
                **position_json(pulled.watermark),
                "max_messages": pulled.limits.max_messages,
                "max_bytes": pulled.limits.max_bytes,
                "wait_ms": pulled.limits.wait_ms,
                "skipped": skipped_json(result.skipped),
            }
        )
        if rows:
            rows[-1] = rows[-1][:-1]
        return [head[:-1] + b',"messages":[', *rows, b"]}"]

    def _facts(self, pulled: Pulled) -> tuple[str, ...]:
        """Return the values of _FACTS, for headers or an Arrow schema's metadata."""
        result, watermark, limits = pulled.result, pulled.watermark, pulled.limits
        bounds, skipped = result.bounds, result.skipped
        return (
            self._state.settings.store_name,
            self._topic,
            str(self._queue_id),
            result.status.value,
            str(pulled.requested_offset),
            str(result.next_offset),
            str(bounds.min_offset),
            str(bounds.max_offset),
            str(watermark.term),
            str(watermark.physical_offset),
            str(watermark.published_ms),
            str(watermark.committed_offset),
            str(watermark.lag_bytes),
            str(limits.max_messages),
            str(limits.max_bytes),
            str(limits.wait_ms),
            str(result.message_count),
            orjson.dumps(skipped_json(skipped[:_MOST_SKIPPED_IN_HEADER])).decode() if skipped else "[]",
        )


def _stored_records(pulled: Pulled) -> Pieces:
    return [part.records.stored_bytes(part.chosen) for part in pulled.result.parts]


def _rows(pulled: Pulled, encoding: BodyEncoding, terminator: bytes, as_broker: bool, room: BodyRoom) -> Pieces:
    """Return the messages as JSON objects, each followed by *terminator*."""
    return [
        piece
        for part in pulled.result.parts
        for piece in message_json(part, encoding, terminator=terminator, as_broker=as_broker, room=room)
    ]


_MOST_SKIPPED_IN_HEADER = 20


_FACTS = (
    "tidemark.store",
    "tidemark.topic",
    "tidemark.queue_id",
    "tidemark.status",
    "tidemark.requested_offset",
    "tidemark.next_offset",
    "tidemark.min_offset",
    "tidemark.max_offset",
    "tidemark.term",
    "tidemark.watermark",
    "tidemark.published_ms",
    "tidemark.committed_offset",
    "tidemark.lag_bytes",
    "tidemark.max_messages",
    "tidemark.max_bytes",
    "tidemark.wait_ms",
    "tidemark.message_count",
    "tidemark.skipped",
)
_HEADERS = tuple(name.replace(".", "-").replace("_", "-").title() for name in _FACTS)  # Tidemark-Next-Offset
