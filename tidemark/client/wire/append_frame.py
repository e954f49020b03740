"""Encodes an append stream's message as protobuf bytes, with one copy of each wire batch.

With message objects, a batch would be copied into its request, then into the frame, and then into the frame's bytes.
Fields of a message may come in any order, so `packed` follows the fields that protobuf serialises.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from tidemark.client.wire.plain_request import AppendRequest, PlainRequest
from tidemark.v1.commit_log_pb2 import AppendBatchRequest, AppendStreamRequest

_VARINT, _LENGTH_DELIMITED = 0, 2  # protobuf's wire types: of integers; of bytes and messages


def encode_frame(batches: Iterable[tuple[int, AppendRequest, bytes]]) -> bytes:
    """Return the AppendStreamRequest for (correlation id, request without its payload, wire batch) as bytes."""
    return b"".join(
        piece for correlation_id, request, packed in batches for piece in encode_entry(correlation_id, request, packed)
    )


def encode_entry(correlation_id: int, request: AppendRequest, packed: bytes) -> tuple[bytes, bytes]:
    """Return one batch of an AppendStreamRequest as bytes: all before its wire batch, and *packed* itself."""
    if type(request) is PlainRequest:
        name = request.request_id.encode()
        fields = b"%b%b%b" % (_plain_fields(request.topic, request.queue_id), _head(_NAME, len(name)), name)
    else:
        fields = request.SerializeToString()
    packed_size = len(packed)
    packed_head = _head(_PACKED, packed_size)
    batch_size = len(fields) + len(packed_head) + packed_size
    batch_head = _head(_BATCH, batch_size)
    number = _varint(correlation_id)
    entry_head = _head(_ENTRY, _TAG_SIZE + len(number) + len(batch_head) + batch_size)
    return b"%b%b%b%b%b%b" % (entry_head, _NUMBER, number, batch_head, fields, packed_head), packed


def _varint(value: int) -> bytes:
    """Return *value* as a varint: seven bits per byte, lowest first; the top bit marks that more bytes follow."""
    if value <= 0x7F:
        return bytes((value,))
    if value <= 0x3FFF:
        return bytes((value & 0x7F | 0x80, value >> 7))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


@functools.lru_cache(maxsize=1024)  # a program's batches have few different sizes
def _head(tag: bytes, size: int) -> bytes:
    """Return the bytes before a field of *size* bytes."""
    return tag + _varint(size)


def _tag(
    message: type[AppendStreamRequest | AppendStreamRequest.Entry | AppendBatchRequest], field: str, wire_type: int
) -> bytes:
    return _varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | wire_type)


_ENTRY = _tag(AppendStreamRequest, "batches", _LENGTH_DELIMITED)
_NUMBER = _tag(AppendStreamRequest.Entry, "correlation_id", _VARINT)
_BATCH = _tag(AppendStreamRequest.Entry, "batch", _LENGTH_DELIMITED)
_PACKED = _tag(AppendBatchRequest, "packed", _LENGTH_DELIMITED)
_NAME = _tag(AppendBatchRequest, "request_id", _LENGTH_DELIMITED)
_TAG_SIZE = 1
assert len(_NUMBER) == _TAG_SIZE


@functools.lru_cache(maxsize=1024)
def _plain_fields(topic: str, queue_id: int) -> bytes:
    """Return the fields that all plain requests to one queue have."""
    return AppendBatchRequest(topic=topic, queue_id=queue_id).SerializeToString()
