"""A frame has the bytes that protobuf makes of the same messages."""

from __future__ import annotations

import pytest

from tidemark.client.wire.append_frame import encode_frame
from tidemark.client.wire.plain_request import PlainRequest
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


@pytest.mark.parametrize("topic", ["t", "t" * 127, "t" * 128, "t" * 255])
@pytest.mark.parametrize("request_id", ["r", "r" * 32, "é" * 100])
@pytest.mark.parametrize(("queue_id", "number", "size"), [(0, 1, 1), (127, 300, 16_384), (128, 1 << 40, 127)])
def test_a_plain_request_has_the_bytes_of_its_message(
    topic: str, request_id: str, queue_id: int, number: int, size: int
) -> None:
    message = AppendBatchRequest(topic=topic, queue_id=queue_id, request_id=request_id)
    plain = PlainRequest(topic, request_id, queue_id)
    assert encode_frame([(number, plain, bytes(size))] * 2) == encode_frame([(number, message, bytes(size))] * 2)


def test_a_frame_without_batches_is_empty() -> None:
    assert encode_frame([]) == b""
