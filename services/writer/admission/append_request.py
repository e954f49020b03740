"""A batch as it came in a request: its wire batch is taken out once, because each look at it is a copy."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.v1.commit_log_pb2 import AppendBatchRequest


class Received(NamedTuple):
    """packed: None where the messages are spelled out, or there are none. size: of what the messages take, bytes."""

    request: AppendBatchRequest
    packed: bytes | None
    size: int

    @classmethod
    def of(cls, request: AppendBatchRequest) -> Received:
        """Of *request* as it came."""
        if request.WhichOneof("payload") != "packed":
            return cls(request, None, request.ByteSize())  # which makes its bytes, to count them
        packed = request.packed
        return cls(request, packed, len(packed))
