"""Arrow IPC streams of messages, in pieces that refer to the columns instead of copying them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import pyarrow as pa

from tidemark.read.messages.body import BodyRoom
from tidemark.read.messages.message_columns import SCHEMA, message_batch, schema_of
from tidemark.read.pull import PulledPart

_LARGE_BYTES = 256 << 10  # kept as a separate piece; copying a smaller one is cheaper than sending it separately


class TableForm(NamedTuple):
    """Form of a stream of messages.

    columns       names of SCHEMA's columns to send, in its order; empty: all
    dictionaries  True: the columns REPETITIVE are dictionary-encoded
    compression   of each column's buffers: lz4 or zstd; None: none
    """

    columns: Collection[str] = ()
    dictionaries: bool = False
    compression: str | None = None

    @property
    def schema(self) -> pa.Schema:
        """The stream's schema."""
        if not self.columns and not self.dictionaries:
            return SCHEMA
        return schema_of(self.columns or SCHEMA.names, dictionaries=self.dictionaries)


PLAIN = TableForm()


def arrow_stream(
    parts: list[PulledPart], metadata: Mapping[str, str], form: TableForm = PLAIN, *, room: BodyRoom | None = None
) -> list[bytes | memoryview]:
    """Return an Arrow IPC stream of all *parts* in pieces. *metadata* is added to the schema."""
    pieces = StreamPieces()
    schema = form.schema.with_metadata(dict(metadata))
    options = pa.ipc.IpcWriteOptions(compression=form.compression)
    with pa.ipc.new_stream(pa.PythonFile(pieces, "w"), schema, options=options) as writer:
        for part in parts:
            writer.write_batch(message_batch(part, schema, room=room))
    return pieces.joined()


class StreamPieces:
    """Writable file for `pyarrow.PythonFile`. Buffers are referenced, not copied."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes | memoryview] = []

    def write(self, data: bytes | pa.Buffer) -> int:
        """Add *data*."""
        self._pieces.append(data if isinstance(data, bytes) else memoryview(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: no data is buffered."""

    def close(self) -> None:
        """Do nothing: the pieces are kept."""

    def joined(self) -> list[bytes | memoryview]:
        """Return all data in order: large pieces unchanged, adjacent small ones joined."""
        joined: list[bytes | memoryview] = []
        small: list[bytes | memoryview] = []
        for piece in self._pieces:
            if len(piece) < _LARGE_BYTES:
                small.append(piece)
                continue
            if small:
                joined.append(b"".join(small))
                small = []
            joined.append(piece)
        if small:
            joined.append(b"".join(small))
        return joined
