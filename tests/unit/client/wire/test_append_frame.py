"""A frame has the bytes that protobuf makes of the same messages."""

from __future__ import annotations

import pytest

from tidemark.client.wire.append_frame import encode_frame
from tidemark.v1.commit_log_pb2 import AppendBatchRequest, AppendStreamRequest


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 3_000_000])
def test_a_frame_is_read_as_the_batches_that_were_given(size: int) -> None:
    """Lengths have one to four bytes; there are fields before and after `packed`, and a batch without any."""
    requests = [
        AppendBatchRequest(),
        AppendBatchRequest(topic="orders", queue_id=0, request_id="r", properties={"a": "1"}, tracestate="k=v"),
        AppendBatchRequest(topic="t" * 200, queue_id=3, expected_next_offset=0),
    ]
    packed = [b"x", bytes(size), b"\xff" * size]
    frame = encode_frame((number**40, *batch) for number, batch in enumerate(zip(requests, packed, strict=True)))
    for request, payload in zip(requests, packed, strict=True):
        request.packed = payload
    entries = [
        AppendStreamRequest.Entry(correlation_id=number**40, batch=request) for number, request in enumerate(requests)
    ]
    assert AppendStreamRequest.FromString(frame) == AppendStreamRequest(batches=entries)


def test_a_frame_without_batches_is_empty() -> None:
    assert encode_frame([]) == b""
