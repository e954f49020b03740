"""Messages as JSON text: by the compiled writer, and by the plain one (`message_rows`) for unsupported cases."""

from __future__ import annotations

import orjson

from tidemark.format.message_json import put_messages
from tidemark.read.buffers import POOL
from tidemark.read.messages.body import BodyEncoding, BodyRoom
from tidemark.read.messages.message_rows import message_rows
from tidemark.read.pull import PulledPart

_ON_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
_RARE_TOGETHER = 256  # messages passed to the plain writer at once: rare cases tend to be adjacent


def message_json(
    part: PulledPart,
    encoding: BodyEncoding,
    *,
    terminator: bytes,
    as_broker: bool = False,
    room: BodyRoom | None = None,
) -> list[bytes | memoryview]:
    """Return the messages of *part* as JSON objects in pieces, each followed by *terminator* (a byte).

    room  limit of the response for decompressed bodies
    """
    n = len(part.messages)
    if as_broker or encoding is BodyEncoding.JSON:
        return [_plain(part, 0, n, encoding, terminator, as_broker=as_broker, room=room)]
    pieces: list[bytes | memoryview] = []
    at = 0
    while at < n:
        run = put_messages(
            part.records.buffer,
            part.messages,
            at,
            is_text=encoding is not BodyEncoding.BASE64,
            terminator=terminator,
            new_buffer=POOL.lend,
        )
        pieces.append(run.text.data)
        at = run.end
        if run.is_rare:
            end = min(at + _RARE_TOGETHER, n)
            pieces.append(_plain(part, at, end, encoding, terminator, as_broker=False, room=room))
            at = end
    return pieces


def _plain(
    part: PulledPart,
    first: int,
    end: int,
    encoding: BodyEncoding,
    terminator: bytes,
    *,
    as_broker: bool,
    room: BodyRoom | None,
) -> bytes:
    some = PulledPart(part.records, part.messages[first:end], part.chosen)
    rows = message_rows(some, encoding, as_broker=as_broker, room=room)
    texts = [orjson.dumps(row) for row in rows]
    if encoding is BodyEncoding.JSON and terminator == b"\n":  # an inlined body may contain line feeds as whitespace
        texts = [text.translate(_ON_ONE_LINE) for text in texts]
    return b"".join(text + terminator for text in texts)
