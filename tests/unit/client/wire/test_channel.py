"""The client's gRPC channel against a fake writer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from services.writer.config import WriterSettings
from tests.fixed_ports import fixed_port
from tests.unit.client.fake_writer import FakeWriter
from tidemark.client.wire.channel import KEEPALIVE_TIME_MS, default_address, open_channel, proxy_option
from tidemark.tls.credentials import Credentials
from tidemark.v1 import topics_pb2 as pb
from tidemark.v1.topics_pb2_grpc import TopicServiceStub

TIMEOUT_S = 20
PLAIN = Credentials()


class BusyWriter(FakeWriter):
    """A writer that is unavailable for the first *failures* calls, and keeps the metadata of all."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__()
        self.failures = failures
        self.calls: list[dict[str, Any]] = []

    def _receive(self, context: grpc.ServicerContext) -> None:
        self.calls.append({item[0]: item[1] for item in context.invocation_metadata()})
        if len(self.calls) <= self.failures:
            context.abort(grpc.StatusCode.UNAVAILABLE, "busy")

    def GetRoute(self, request: pb.GetRouteRequest, context: Any) -> pb.GetRouteResponse:  # noqa: N802
        self._receive(context)
        return super().GetRoute(request, context)

    def DeleteTopic(self, request: Any, context: Any) -> pb.DeleteTopicResponse:  # noqa: N802
        self._receive(context)
        return pb.DeleteTopicResponse()

    def ListTopics(self, request: Any, context: Any) -> pb.ListTopicsResponse:  # noqa: N802
        self._receive(context)
        return pb.ListTopicsResponse(topics=[pb.Topic(name="x" * 100_000)] * 60)


@pytest.fixture
def writer() -> Iterator[BusyWriter]:
    fake = BusyWriter()
    fake.start()
    yield fake
    fake.stop()


def test_a_call_that_may_be_repeated_is_repeated_while_the_writer_is_unavailable(writer: BusyWriter) -> None:
    writer.failures = 2
    with open_channel(writer.address, PLAIN) as channel:
        answer = TopicServiceStub(channel).GetRoute(pb.GetRouteRequest(name="t"), timeout=TIMEOUT_S)
    assert answer.topic.name == "t"
    assert len(writer.calls) == 3


def test_a_deletion_is_sent_once(writer: BusyWriter) -> None:
    """The first call may have deleted the topic, and a new topic of its name may exist by the second."""
    writer.failures = 1
    with open_channel(writer.address, PLAIN) as channel, pytest.raises(grpc.RpcError) as failed:
        TopicServiceStub(channel).DeleteTopic(pb.DeleteTopicRequest(name="t"), timeout=TIMEOUT_S)
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
    assert len(writer.calls) == 1


def test_a_call_that_may_be_repeated_waits_for_a_writer_that_starts() -> None:
    writer = BusyWriter()
    writer.port = fixed_port()
    with open_channel(writer.address, PLAIN) as channel:
        call = TopicServiceStub(channel).GetRoute.future(pb.GetRouteRequest(name="t"), timeout=TIMEOUT_S)
        refused = TopicServiceStub(channel).DeleteTopic.future(pb.DeleteTopicRequest(name="t"), timeout=TIMEOUT_S)
        with pytest.raises(grpc.RpcError):  # no writer is there yet
            refused.result()
        assert not call.done()
        writer.start()
        assert call.result().topic.name == "t"
    writer.stop()


def test_an_answer_may_be_larger_than_grpcs_default_limit(writer: BusyWriter) -> None:
    """The default is 4 MiB; the writer's own limits decide."""
    with open_channel(writer.address, PLAIN) as channel:
        answer = TopicServiceStub(channel).ListTopics(pb.ListTopicsRequest(), timeout=TIMEOUT_S)
    assert answer.ByteSize() > 4 << 20


def test_each_call_shows_the_token(writer: BusyWriter) -> None:
    for credentials in (Credentials(token="secret"), PLAIN):
        with open_channel(writer.address, credentials) as channel:
            TopicServiceStub(channel).DeleteTopic(pb.DeleteTopicRequest(name="t"), timeout=TIMEOUT_S)
    assert [call.get("authorization") for call in writer.calls] == ["Bearer secret", None]


def test_keepalive_pings_are_as_rare_as_the_writer_requires() -> None:
    """The writer closes a connection with more frequent pings."""
    assert WriterSettings().min_ping_interval_ms <= KEEPALIVE_TIME_MS


@pytest.mark.parametrize(("value", "expected"), [(None, "127.0.0.1:8081"), ("tls://writer:9", "tls://writer:9")])
def test_the_default_address_is_the_environments(
    monkeypatch: pytest.MonkeyPatch, value: str | None, expected: str
) -> None:
    monkeypatch.delenv("TIDEMARK_WRITER_ADDRESS", raising=False)
    if value is not None:
        monkeypatch.setenv("TIDEMARK_WRITER_ADDRESS", value)
    assert default_address() == expected


@pytest.mark.parametrize(("value", "is_used"), [("true", 1), (" ON ", 1), ("1", 1), ("", 0), ("false", 0), ("0", 0)])
def test_a_proxy_is_used_only_if_it_is_requested(monkeypatch: pytest.MonkeyPatch, value: str, is_used: int) -> None:
    """The values are those of a boolean setting."""
    monkeypatch.setenv("TIDEMARK_GRPC_PROXY", value)
    assert proxy_option()[1] == is_used
