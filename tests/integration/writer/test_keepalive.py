"""An idle client that sends keep-alive pings keeps its connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from services.writer.config import WriterSettings
from tests.builders import wire_batch
from tests.integration.writer.harness import RunningWriter
from tidemark.client.wire.channel import KEEPALIVE_TIME_MS
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub

pytestmark = pytest.mark.integration

PINGS = (
    ("grpc.keepalive_time_ms", 1_000),
    ("grpc.http2.max_pings_without_data", 0),  # no limit on pings
    ("grpc.use_local_subchannel_pool", 1),
)
IDLE_S = 6.0  # three pings are too many for a server that does not expect them


def test_an_idle_stream_outlives_its_pings(tmp_path: Path) -> None:
    """The writer does not close the connection because of them: the answer comes on the same stream."""
    idle = threading.Event()

    def requests() -> Iterator[pb.AppendStreamRequest]:
        for number in range(2):
            batch = pb.AppendBatchRequest(topic="t", queue_id=0, packed=wire_batch((b"x", b"", 0)))
            yield pb.AppendStreamRequest(batches=[pb.AppendStreamRequest.Entry(correlation_id=number, batch=batch)])
            if not number:
                idle.wait(IDLE_S)

    with (
        RunningWriter(tmp_path, min_ping_interval_ms=500) as writer,
        grpc.insecure_channel(writer.address, options=PINGS) as channel,
    ):
        stub: Any = CommitLogServiceStub(channel)  # type: ignore[no-untyped-call, unused-ignore]
        answers = list(stub.AppendStream(requests(), timeout=60))
    results = [result for answer in answers for result in answer.results]
    assert [result.appended.queue_offset for result in results] == [0, 1]


def test_the_client_pings_no_more_often_than_the_writer_allows() -> None:
    """The defaults of both are compared: otherwise each idle producer would be disconnected after a while."""
    assert 2 * WriterSettings().min_ping_interval_ms <= KEEPALIVE_TIME_MS
