"""A call that a stopping writer cancels is retried, like one that never reached a writer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from tidemark.client import Topics
from tidemark.errors import WriterUnreachableError
from tidemark.v1 import topics_pb2 as pb
from tidemark.v1.topics_pb2_grpc import TopicServiceServicer, add_TopicServiceServicer_to_server

pytestmark = pytest.mark.integration


class Stopping(TopicServiceServicer):
    """Cancels its first *cancelled* calls, as gRPC does when a server stops."""

    def __init__(self) -> None:
        self.cancelled = 0

    def ListTopics(self, request: pb.ListTopicsRequest, context: Any) -> pb.ListTopicsResponse:  # noqa: N802
        if self.cancelled:
            self.cancelled -= 1
            context.abort(grpc.StatusCode.CANCELLED, "CANCELLED")
        return pb.ListTopicsResponse()


@pytest.fixture
def service() -> Stopping:
    """Return the service."""
    return Stopping()  # type: ignore[abstract]  # other calls get UNIMPLEMENTED


@pytest.fixture
def topics(service: Stopping) -> Iterator[Topics]:
    """Yield a client of it."""
    server = grpc.server(ThreadPoolExecutor(1))
    add_TopicServiceServicer_to_server(service, server)  # type: ignore[no-untyped-call, unused-ignore]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with Topics(f"127.0.0.1:{port}") as topics:
        yield topics
    server.stop(0)


def test_a_cancelled_call_is_retried(service: Stopping, topics: Topics) -> None:
    """gRPC itself retries, because the calls are idempotent."""
    service.cancelled = 2
    assert topics.list_all() == []


def test_a_lasting_cancellation_raises_writer_unreachable(service: Stopping, topics: Topics) -> None:
    """The cancellation lasts."""
    service.cancelled = 1000
    with pytest.raises(WriterUnreachableError, match="CANCELLED"):
        topics.list_all()
