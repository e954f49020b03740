"""Decodes the body of an append request, an AppendStreamRequest, without a copy of large wire batches.

protobuf copies a field twice: into its message, and from there into the bytes that it returns.
"""

from __future__ import annotations

from tidemark.remoting.frame import Buffer
from tidemark.v1.commit_log_pb2 import AppendBatchRequest, AppendStreamRequest

from ..admission.append_request import Received

_LARGE_BYTES = 16 << 10  # below, protobuf's own decoder takes less time
_VARINT, _LENGTH_DELIMITED = 0, 2  # protobuf's wire types: of integers; of bytes and messages
_ENTRY = AppendStreamRequest.BATCHES_FIELD_NUMBER << 3 | _LENGTH_DELIMITED
_NUMBER = AppendStreamRequest.Entry.CORRELATION_ID_FIELD_NUMBER << 3 | _VARINT
_BATCH = AppendStreamRequest.Entry.BATCH_FIELD_NUMBER << 3 | _LENGTH_DELIMITED
_PACKED = AppendBatchRequest.PACKED_FIELD_NUMBER << 3 | _LENGTH_DELIMITED
_MAX_SHIFT = 56  # of a number's last byte: larger numbers are left to protobuf


class _UnusualFormError(Exception):
    """The body is malformed, or in another form than that of Tidemark's clients."""


def entries_of(body: Buffer) -> list[tuple[int, Received]]:
    """Return the correlation id and the append of each batch in *body*.

    A wire batch in a large body is a part of *body* if its field is the last of its request, as Tidemark's clients
    write it. Raises protobuf's DecodeError.
    """
    if len(body) >= _LARGE_BYTES:
        try:
            return _parts(memoryview(body).toreadonly())
        except (_UnusualFormError, IndexError):
            pass
    request = AppendStreamRequest.FromString(bytes(body))
    return [(entry.correlation_id, Received.of(entry.batch)) for entry in request.batches]


def _parts(body: memoryview) -> list[tuple[int, Received]]:
    entries, end = [], 0
    while end < len(body):
        start, end = _field(body, end, _ENTRY)
        entries.append(_entry(body[start:end]))
    return entries


def _entry(entry: memoryview) -> tuple[int, Received]:
    number, at = _varint(entry, 1) if entry[0] == _NUMBER else (0, 0)
    start, end = _field(entry, at, _BATCH)
    if end != len(entry):
        raise _UnusualFormError
    return number, _received(entry[start:])


def _received(batch: memoryview) -> Received:
    at = 0
    while (tag := batch[at]) != _PACKED:
        kind = tag & 7
        if tag > 0x7F or kind not in (_VARINT, _LENGTH_DELIMITED):
            raise _UnusualFormError
        at = _varint(batch, at + 1)[1] if kind == _VARINT else _field(batch, at, tag)[1]
    start, end = _field(batch, at, _PACKED)
    request = AppendBatchRequest.FromString(bytes(batch[:at]))
    if end != len(batch) or request.HasField("messages"):
        raise _UnusualFormError
    packed = batch[start:]
    return Received(request, packed, len(packed))


def _field(data: memoryview, at: int, tag: int) -> tuple[int, int]:
    """Return start and end of the content of the length-delimited field with *tag* at *at*."""
    if data[at] != tag:
        raise _UnusualFormError
    size, start = _varint(data, at + 1)
    if start + size > len(data):
        raise _UnusualFormError
    return start, start + size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return the number at *at* and its end."""
    value = shift = 0
    while (byte := data[at]) > 0x7F:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if shift > _MAX_SHIFT:
            raise _UnusualFormError
    return value | byte << shift, at + 1
