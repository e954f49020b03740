from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from tests.fixed_ports import fixed_port
from tests.unit.client.fake_query import Reply, fake_query
from tests.unit.client.fake_writer import FakeWriter
from tidemark.client.wire.channel import open_channel
from tidemark.client.wire.unary_call import call_writer
from tidemark.errors import StoreError, WriterUnreachableError
from tidemark.tls.credentials import Credentials
from tidemark.v1 import topics_pb2
from tidemark.v1.topics_pb2_grpc import TopicServiceStub

PLAIN = Credentials()


@pytest.fixture
def channel(writer: FakeWriter) -> Iterator[grpc.Channel]:
    with open_channel(writer.address, PLAIN) as made:
        yield made


def route_at(address: str, *, timeout_s: float) -> topics_pb2.GetRouteResponse:
    with open_channel(address, PLAIN) as channel:
        method = TopicServiceStub(channel).GetRoute
        answer: topics_pb2.GetRouteResponse = call_writer(
            method, topics_pb2.GetRouteRequest(name="t"), address, PLAIN, timeout_s=timeout_s
        )
        return answer


def test_a_unary_call_returns_the_answer_of_the_writer(writer: FakeWriter) -> None:
    assert route_at(writer.address, timeout_s=20).topic.name == "t"


def test_a_failure_of_the_writer_is_a_store_error_with_the_call_as_its_cause(
    writer: FakeWriter, channel: grpc.Channel
) -> None:
    request = topics_pb2.DeleteTopicRequest(name="t")
    with pytest.raises(StoreError) as failed:
        call_writer(TopicServiceStub(channel).DeleteTopic, request, writer.address, PLAIN, timeout_s=20)
    assert isinstance(failed.value.__cause__, grpc.RpcError)


def test_the_port_of_another_service_fails_the_call_before_its_timeout() -> None:
    with fake_query(lambda _: Reply()) as fake, pytest.raises(WriterUnreachableError, match="does not speak gRPC"):
        route_at(fake.url.removeprefix("http://"), timeout_s=600)


def test_a_refused_connection_is_reported_after_the_timeout() -> None:
    address = f"127.0.0.1:{fixed_port()}"
    with pytest.raises(StoreError, match="refused") as failed:
        route_at(address, timeout_s=0.3)
    assert address in failed.value.message
