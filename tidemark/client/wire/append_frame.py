"""Encodes an append stream's message as protobuf bytes, with one copy of each wire batch.

With message objects, a batch would be copied into its request, then into the frame, and then into the frame's bytes.
Fields of a message may come in any order, so `packed` follows the fields that protobuf serialises.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.v1.commit_log_pb2 import AppendBatchRequest, AppendStreamRequest

_VARINT, _LENGTH_DELIMITED = 0, 2  # protobuf's wire types: of integers; of bytes and messages


def encode_frame(batches: Iterable[tuple[int, AppendBatchRequest, bytes]]) -> bytes:
    """Return the AppendStreamRequest for (correlation id, request without its payload, wire batch) as bytes."""
    pieces: list[bytes] = []
    for correlation_id, request, packed in batches:
        packed_head = _PACKED + _varint(len(packed))
        fields = request.SerializeToString()
        batch_head = _BATCH + _varint(len(fields) + len(packed_head) + len(packed))
        number = _NUMBER + _varint(correlation_id)
        entry_size = len(number) + len(batch_head) + len(fields) + len(packed_head) + len(packed)
        pieces += [_ENTRY, _varint(entry_size), number, batch_head, fields, packed_head, packed]
    return b"".join(pieces)


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


def _tag(
    message: type[AppendStreamRequest | AppendStreamRequest.Entry | AppendBatchRequest], field: str, wire_type: int
) -> bytes:
    return _varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | wire_type)


_ENTRY = _tag(AppendStreamRequest, "batches", _LENGTH_DELIMITED)
_NUMBER = _tag(AppendStreamRequest.Entry, "correlation_id", _VARINT)
_BATCH = _tag(AppendStreamRequest.Entry, "batch", _LENGTH_DELIMITED)
_PACKED = _tag(AppendBatchRequest, "packed", _LENGTH_DELIMITED)
