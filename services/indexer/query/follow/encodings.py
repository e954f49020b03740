"""The forms of a followed answer: NDJSON, server-sent events, an Arrow stream, and records as stored."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import orjson
import pyarrow as pa

from tidemark.format.record import BLANK_SIZE, encode_blank
from tidemark.read.messages.body import BodyEncoding, BodyRoom
from tidemark.read.messages.message_columns import SCHEMA, message_batch
from tidemark.read.messages.message_json import message_json
from tidemark.read.pull import PulledPart

from ..queue_allocation import Queue
from .page import Page

_COLUMNS = pa.schema([("topic", pa.string()), ("queue_id", pa.int32()), *SCHEMA])
_ARROW_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_RETRY_MS = 1000


class FollowFormat(enum.Enum):
    """Form of a followed answer, with its media type."""

    NDJSON = "application/x-ndjson"
    EVENTS = "text/event-stream"
    ARROW = "application/vnd.apache.arrow.stream"
    RECORDS = "application/octet-stream"


class Form(Protocol):
    """Makes the bytes of one answer."""

    def begin(self) -> bytes:
        """Return the first bytes."""

    def rows(self, queue: Queue, part: PulledPart, encoding: BodyEncoding, room: BodyRoom) -> list[bytes | memoryview]:
        """Return the messages of *part*, as `Page.rows` has them."""

    def page(self, page: Page, before: str, after: str) -> Sequence[bytes | memoryview]:
        """Return a page's bytes. before, after: the positions around the offset that follows each message."""

    def heartbeat(self, positions: str) -> bytes:
        """Return bytes without a message."""

    def event(self, name: str, content: Mapping[str, Any], positions: str) -> bytes:
        """Return an event that is no message: skipped, problem or end. Binary forms have none."""

    def end(self) -> bytes:
        """Return the last bytes."""


class NdjsonForm:
    """One line per message; heartbeats are empty lines, other events lines with a member `event`."""

    def begin(self) -> bytes:
        """Return nothing."""
        return b""

    def rows(self, queue: Queue, part: PulledPart, encoding: BodyEncoding, room: BodyRoom) -> list[bytes | memoryview]:
        """Return lines that begin with the queue."""
        lines = b"".join(message_json(part, encoding, terminator=b"\n", room=room))
        if not lines:
            return []
        head = orjson.dumps({"topic": queue.topic, "queue_id": queue.queue_id})[:-1] + b","
        return [head, lines[1:-1].replace(b"\n{", b"\n" + head), b"\n"]  # no line contains a line feed

    def page(self, page: Page, before: str, after: str) -> Sequence[bytes | memoryview]:
        """Return the lines."""
        return page.rows

    def heartbeat(self, positions: str) -> bytes:
        """Return an empty line."""
        return b"\n"

    def event(self, name: str, content: Mapping[str, Any], positions: str) -> bytes:
        """Return a line."""
        return orjson.dumps({"event": name, **content, "positions": positions}) + b"\n"

    def end(self) -> bytes:
        """Return nothing."""
        return b""


class EventsForm(NdjsonForm):
    """Server-sent events. The id of each event is the position after it, for the header Last-Event-ID."""

    def begin(self) -> bytes:
        """Return the time after which a browser connects again."""
        return b"retry: %d\n\n" % _RETRY_MS

    def rows(self, queue: Queue, part: PulledPart, encoding: BodyEncoding, room: BodyRoom) -> list[bytes | memoryview]:
        """Return the data of one event per message."""
        lines = b"".join(super().rows(queue, part, encoding, room))
        return list(lines.split(b"\n")[:-1])

    def page(self, page: Page, before: str, after: str) -> Sequence[bytes | memoryview]:
        """Return the events."""
        head, tail = f"id: {before}".encode(), f"{after}\ndata: ".encode()
        return [
            b"".join(
                b"%b%d%b%b\n\n" % (head, offset + 1, tail, bytes(row))
                for row, offset in zip(page.rows, page.offsets, strict=True)
            )
        ]

    def heartbeat(self, positions: str) -> bytes:
        """Return an id without data, which browsers remember."""
        return f"id: {positions}\n\n".encode()

    def event(self, name: str, content: Mapping[str, Any], positions: str) -> bytes:
        """Return an event of this name."""
        data = orjson.dumps({**content, "positions": positions})
        return b"event: %b\nid: %b\ndata: %b\n\n" % (name.encode(), positions.encode(), data)


class ArrowForm:
    """An Arrow IPC stream: one record batch or several per page; heartbeats are batches without rows."""

    def begin(self) -> bytes:
        """Return the schema."""
        return bytes(_COLUMNS.serialize())

    def rows(self, queue: Queue, part: PulledPart, encoding: BodyEncoding, room: BodyRoom) -> list[bytes | memoryview]:
        """Return a record batch with the queue in its first columns."""
        batch = message_batch(part, room=room)
        place = [
            pa.repeat(pa.scalar(queue.topic), batch.num_rows),
            pa.repeat(pa.scalar(queue.queue_id, pa.int32()), batch.num_rows),
        ]
        placed = pa.RecordBatch.from_arrays([*place, *batch.columns], schema=_COLUMNS)
        return [memoryview(placed.serialize())]

    def page(self, page: Page, before: str, after: str) -> Sequence[bytes | memoryview]:
        """Return the batches."""
        return page.rows

    def heartbeat(self, positions: str) -> bytes:
        """Return a batch without rows."""
        return bytes(pa.RecordBatch.from_pylist([], schema=_COLUMNS).serialize())

    def event(self, name: str, content: Mapping[str, Any], positions: str) -> bytes:
        """Return nothing."""
        return b""

    def end(self) -> bytes:
        """Return the mark of the stream's end."""
        return _ARROW_END


class RecordsForm:
    """Records as stored; heartbeats are blank records of eight bytes, as at the end of a CommitLog file."""

    def begin(self) -> bytes:
        """Return nothing."""
        return b""

    def rows(self, queue: Queue, part: PulledPart, encoding: BodyEncoding, room: BodyRoom) -> list[bytes | memoryview]:
        """Return the records, which name their queue."""
        return [part.records.stored_bytes(part.chosen)]

    def page(self, page: Page, before: str, after: str) -> Sequence[bytes | memoryview]:
        """Return the records."""
        return page.rows

    def heartbeat(self, positions: str) -> bytes:
        """Return a blank record."""
        return encode_blank(BLANK_SIZE)

    def event(self, name: str, content: Mapping[str, Any], positions: str) -> bytes:
        """Return nothing."""
        return b""

    def end(self) -> bytes:
        """Return nothing."""
        return b""


FORMS: Mapping[FollowFormat, Form] = {
    FollowFormat.NDJSON: NdjsonForm(),
    FollowFormat.EVENTS: EventsForm(),
    FollowFormat.ARROW: ArrowForm(),
    FollowFormat.RECORDS: RecordsForm(),
}
