"""A received append request with its wire batch, which is extracted once because each access copies it."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.v1.commit_log_pb2 import AppendBatchRequest


class Received(NamedTuple):
    """An append request.

    packed: its wire batch, which *request* may lack; None if it has `messages` or nothing. size: payload size in bytes.
    dead_from: reconsume times from which a retry is a dead letter; None: its MAX_RECONSUME_TIMES, or the setting.
    """

    request: AppendBatchRequest
    packed: bytes | memoryview | None
    size: int
    dead_from: int | None = None

    @classmethod
    def of(cls, request: AppendBatchRequest) -> Received:
        """Extract the wire batch of *request* and measure the payload."""
        if request.WhichOneof("payload") != "packed":
            return cls(request, None, request.ByteSize())  # slow: ByteSize() serialises the message to measure it
        packed = request.packed
        return cls(request, packed, len(packed))
