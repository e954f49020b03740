"""The stream of appends to one writer."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from tests.unit.client.fake_writer import FakeWriter, Gate
from tidemark.client.wire.append_stream import WriterStream
from tidemark.client.wire.pending_batches import Pending, PendingLimits
from tidemark.client.wire.store_members import StoreMembers
from tidemark.errors import InFlightLimitError
from tidemark.format.elements import Element, encode_elements
from tidemark.v1 import commit_log_pb2


def batch(*, seconds: float) -> Pending:
    packed = encode_elements([Element(b"x", b"", 0)])
    request = commit_log_pb2.AppendBatchRequest(topic="t", queue_id=0, request_id=f"r-{seconds}")
    return Pending(request, packed, len(packed), time.monotonic() + seconds)


def test_a_batch_without_room_fails_at_its_deadline(writer: FakeWriter) -> None:
    """The deadline is that of the waiting batch; the batches that occupy the room may take longer."""
    gate = Gate(writer)
    with closing(StoreMembers(writer.address)) as members:
        stream = WriterStream(members, writer.address, timeout_s=20, limits=PendingLimits(1 << 20, 1))
        stream.submit(batch(seconds=20))
        before = time.monotonic()
        with pytest.raises(InFlightLimitError):
            stream.submit(batch(seconds=0.2))
        assert time.monotonic() - before < 5
        gate.open()
        stream.close()
