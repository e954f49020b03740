"""The batches of a body are those that protobuf reads, and large ones are not copied."""

from __future__ import annotations

import random

import pytest
from google.protobuf.message import DecodeError

from services.writer.admission.append_request import Received
from services.writer.remoting.append_body import entries_of
from tidemark.client.wire.append_frame import encode_frame
from tidemark.v1.commit_log_pb2 import AppendBatchRequest, AppendStreamRequest, Message, MessageList

LARGE = bytes(range(256)) * 100
REQUEST = AppendBatchRequest(
    topic="orders", queue_id=300, request_id="r" * 200, properties={"a": "1"}, born_timestamp_ms=1 << 41
)
Entry = AppendStreamRequest.Entry


def by_protobuf(body: bytes) -> list[tuple[int, Received]]:
    return [(entry.correlation_id, Received.of(entry.batch)) for entry in AppendStreamRequest.FromString(body).batches]


def compared(entries: list[tuple[int, Received]]) -> list[tuple[int, AppendBatchRequest, bytes | None, int]]:
    """Return what a batch consists of; the request may lack its wire batch."""
    found = []
    for number, received in entries:
        request = AppendBatchRequest()
        request.CopyFrom(received.request)
        if received.packed is not None:
            request.ClearField("packed")
        packed = None if received.packed is None else bytes(received.packed)
        found.append((number, request, packed, received.size))
    return found


@pytest.mark.parametrize("size", [0, 1, 10_000, 20_000, 3_000_000])
def test_batches_of_tidemarks_clients_are_not_copied(size: int) -> None:
    wires = [b"x", bytes(size), LARGE, b""]
    body = encode_frame((number**20, REQUEST, wire) for number, wire in enumerate(wires))
    entries = entries_of(memoryview(bytearray(body)))
    assert compared(entries) == compared(by_protobuf(body))
    assert [bytes(received.packed or b"") for _, received in entries] == wires
    assert all(isinstance(received.packed, memoryview) and received.packed.readonly for _, received in entries)


def _entries(*batches: AppendBatchRequest) -> bytes:
    return AppendStreamRequest(batches=[Entry(batch=batch) for batch in batches]).SerializeToString()


PACKED = AppendBatchRequest(packed=LARGE)
SPELLED_OUT = AppendBatchRequest(messages=MessageList(messages=[Message(body=LARGE)]))
UNUSUAL = {
    "another field after the wire batch": _entries(AppendBatchRequest(topic="t", packed=LARGE, tracestate="k=v")),
    "messages that are spelled out": _entries(SPELLED_OUT),
    "no payload beside a large one": _entries(AppendBatchRequest(topic="t"), PACKED),
    "messages, replaced by a wire batch": encode_frame([(1, SPELLED_OUT, LARGE)]),
    "two wire batches in one request": encode_frame([(1, PACKED, LARGE)]),
    "an entry without a batch": encode_frame([(1, REQUEST, LARGE)]) + b"\x0a\x02\x08\x05",
    "an empty entry": b"\x0a\x00" + encode_frame([(1, REQUEST, LARGE)]),
    "an unknown field": encode_frame([(1, REQUEST, LARGE)]) + b"\x98\x06\x01",
    "a number of ten bytes": encode_frame([((1 << 64) - 1, REQUEST, LARGE)]),
    "a negative number": encode_frame([(1, AppendBatchRequest(flag=-1), LARGE)]),
}


@pytest.mark.parametrize("form", UNUSUAL)
def test_other_forms_are_read_as_by_protobuf(form: str) -> None:
    body = UNUSUAL[form]
    assert len(body) > 16_384
    assert compared(entries_of(memoryview(body))) == compared(by_protobuf(body))


def test_a_damaged_body_is_read_as_by_protobuf_or_refused() -> None:
    body = bytearray(encode_frame([(7, REQUEST, LARGE), (8, REQUEST, b"x")]))
    dice = random.Random(1)
    refused = 0
    for _ in range(3_000):
        damaged = body.copy()
        damaged[dice.choice((*range(260), *range(len(body) - 230, len(body))))] = dice.randrange(256)
        damaged = damaged[: dice.choice((len(body), dice.randrange(16_384, len(body))))]
        try:
            expected = compared(by_protobuf(bytes(damaged)))
        except DecodeError:
            refused += 1
            with pytest.raises(DecodeError):
                entries_of(memoryview(damaged))
        else:
            assert compared(entries_of(memoryview(damaged))) == expected
    assert 0 < refused < 3_000
