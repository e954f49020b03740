"""Converts a walked part to Arrow record batches and back: rows, names and key hashes. Bodies stay in the log.

Each part is one record batch. Its end offset, its damages and the text with the names are the batch's metadata.
"""

from __future__ import annotations

import numpy as np
import orjson
import pyarrow as pa

from tidemark.format.dispatch_request import DISPATCH_REQUEST, RequestArray, U8Array
from tidemark.format.queue_groups import number_queues
from tidemark.index.log_walk import Damage, LogPart
from tidemark.index.part_keys import PartKeys

_FIELDS = (
    "physical_offset",
    "queue_offset",
    "tags_code",
    "store_timestamp",
    "base_offset",
    "topic_hash",
    "message_size",
    "queue_id",
    "batch_size",
    "sys_flag",
    "topic_at",
    "topic_length",
    "fault",
)
_LIGHT_FIELDS = ("multi_dispatch_at", "multi_dispatch_length", "multi_offsets_at", "multi_offsets_length")
_TEXTS = ("multi_dispatch", "multi_offsets")
Metadata = dict[bytes, bytes]


def row_schema(*, light: bool) -> pa.Schema:
    """Return the schema of the rows. light: with the names of light queues."""
    names = _FIELDS + (_LIGHT_FIELDS if light else ())
    return pa.schema([pa.field(name, pa.from_numpy_dtype(DISPATCH_REQUEST[name]), nullable=False) for name in names])


KEY_SCHEMA = pa.schema(
    [
        pa.field("hash", pa.int32(), nullable=False),
        pa.field("physical_offset", pa.int64(), nullable=False),
        pa.field("store_timestamp", pa.int64(), nullable=False),
    ]
)


def rows_to_batch(part: LogPart, schema: pa.Schema) -> tuple[pa.RecordBatch, Metadata]:
    """Convert the rows of *part*. The text holds each name once, however many rows refer to it."""
    text = _Text(part.buffer)
    columns = {name: part.requests[name] for name in schema.names}
    columns["topic_at"] = text.names(part.requests)
    if _LIGHT_FIELDS[0] in schema.names:
        for name in _TEXTS:
            columns[f"{name}_at"] = text.values(part.requests, name)
    arrays = [pa.array(np.ascontiguousarray(columns[name])) for name in schema.names]
    metadata = {
        b"end_offset": orjson.dumps(part.end_offset),
        b"damages": orjson.dumps([list(damage) for damage in part.damages]),
        b"text": bytes(text.bytes),
    }
    return pa.RecordBatch.from_arrays(arrays, schema=schema), metadata


def keys_to_batch(part: LogPart) -> pa.RecordBatch:
    """Convert the hashed keys of *part*."""
    return pa.RecordBatch.from_arrays([pa.array(column) for column in part.hashed_keys()], schema=KEY_SCHEMA)


def batch_to_part(batch: pa.RecordBatch, metadata: Metadata, *, start: int) -> LogPart:
    """Return the part that begins at physical offset *start*. Its buffer is the text, so positions refer to that."""
    requests: RequestArray = np.zeros(batch.num_rows, DISPATCH_REQUEST)
    for name in batch.schema.names:
        requests[name] = batch.column(name).to_numpy()
    requests["owned"] = 1
    return LogPart(
        buffer=np.frombuffer(metadata[b"text"], np.uint8),
        base_offset=start,
        requests=requests,
        damages=[Damage(*damage) for damage in orjson.loads(metadata[b"damages"])],
        end_offset=orjson.loads(metadata[b"end_offset"]),
    )


def batch_to_keys(batch: pa.RecordBatch) -> PartKeys:
    """Return the keys of a part."""
    return PartKeys(*(batch.column(name).to_numpy() for name in KEY_SCHEMA.names))


class _Text:
    """Builder of the text that rows refer to."""

    def __init__(self, buffer: U8Array) -> None:
        self._buffer = buffer
        self.bytes = bytearray()

    def names(self, requests: RequestArray) -> np.ndarray:
        """Add each queue's topic once and return its position for each row."""
        queues = number_queues(self._buffer, requests)
        return np.array([self._add(row, "topic") for row in requests[queues.firsts]], np.int32)[queues.numbers]

    def values(self, requests: RequestArray, name: str) -> np.ndarray:
        """Add the values of *name* and return the position for each row; only few rows have one."""
        at = np.zeros(len(requests), np.int32)
        for i in np.flatnonzero(requests[f"{name}_length"] > 0).tolist():
            at[i] = self._add(requests[i], name)
        return at

    def _add(self, row: np.void, name: str) -> int:
        at, length = int(row[f"{name}_at"]), int(row[f"{name}_length"])
        place = len(self.bytes)
        self.bytes += self._buffer[at : at + length].tobytes()
        return place
