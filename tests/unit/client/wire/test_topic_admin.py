"""Topic administration against a fake writer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from grpc_status import rpc_status

from tests.unit.client.fake_writer import FakeWriter, refusal
from tidemark.client.wire.store_members import StoreMembers
from tidemark.client.wire.topic_admin import BATCH_QUEUE, Topic, Topics
from tidemark.errors import TopicNotFoundError
from tidemark.v1 import topics_pb2 as pb

ORDERS = pb.Topic(name="orders", read_queue_count=8, write_queue_count=4, permission=6, attributes=BATCH_QUEUE)
AS_READ = Topic("orders", read_queues=8, write_queues=4, permission=6, attributes={"queue.type": "BatchCQ"})


class AdminWriter(FakeWriter):
    """A writer that has the topic `orders` only, and keeps the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Any] = []

    def _take(self, request: Any, context: grpc.ServicerContext) -> pb.Topic:
        self.requests.append(request)
        if getattr(request, "name", "orders") != "orders":
            status: Any = rpc_status.to_status(refusal("TOPIC_NOT_FOUND", {"topic": request.name}))
            context.abort_with_status(status)
        return ORDERS

    def CreateTopic(self, request: Any, context: Any) -> pb.CreateTopicResponse:  # noqa: N802
        return pb.CreateTopicResponse(topic=self._take(request, context))

    def AlterTopic(self, request: Any, context: Any) -> pb.AlterTopicResponse:  # noqa: N802
        return pb.AlterTopicResponse(topic=self._take(request, context))

    def DescribeTopic(self, request: Any, context: Any) -> pb.DescribeTopicResponse:  # noqa: N802
        queues = [pb.DescribeTopicResponse.Queue(queue_id=number, next_queue_offset=10 * number) for number in (0, 3)]
        return pb.DescribeTopicResponse(topic=self._take(request, context), queues=queues)

    def ListTopics(self, request: Any, context: Any) -> pb.ListTopicsResponse:  # noqa: N802
        return pb.ListTopicsResponse(topics=[self._take(request, context), pb.Topic(name="audit")])

    def DeleteTopic(self, request: Any, context: Any) -> pb.DeleteTopicResponse:  # noqa: N802
        self._take(request, context)
        return pb.DeleteTopicResponse()


@pytest.fixture
def writer() -> Iterator[AdminWriter]:
    fake = AdminWriter()
    fake.start()
    yield fake
    fake.stop()


@pytest.fixture
def topics(writer: AdminWriter) -> Iterator[Topics]:
    with Topics(writer.address, timeout_s=20) as made:
        yield made


def test_a_topic_is_created_with_the_writers_number_of_queues_unless_given(writer: AdminWriter, topics: Topics) -> None:
    """A request for 0 queues gets the default."""
    assert topics.create("orders") == AS_READ
    topics.create("orders", queues=4, attributes=BATCH_QUEUE)
    default, given = writer.requests
    assert (default.queue_count, dict(default.attributes)) == (0, {})
    assert (given.queue_count, dict(given.attributes)) == (4, {"queue.type": "BatchCQ"})


def test_an_alteration_leaves_out_each_argument_that_is_not_given(writer: AdminWriter, topics: Topics) -> None:
    """A field of 0 would be a change, so it must be absent."""
    assert topics.alter("orders", write_queues=4) == AS_READ
    topics.alter("orders", permission=0, attributes={"-message.type": ""})
    fields = ("read_queue_count", "write_queue_count", "permission")
    present = [[name for name in fields if request.HasField(name)] for request in writer.requests]
    assert present == [["write_queue_count"], ["permission"]]
    assert dict(writer.requests[1].attributes) == {"-message.type": ""}


def test_a_description_has_the_next_offset_of_each_queue(topics: Topics) -> None:
    assert topics.describe("orders") == (AS_READ, {0: 0, 3: 30})


def test_all_topics_are_listed(topics: Topics) -> None:
    assert topics.list_all() == [AS_READ, Topic("audit", 0, 0, 0)]


def test_a_route_is_that_of_an_append(topics: Topics) -> None:
    """The topic need not exist: an append would create it with the writer's default of 4 queues."""
    assert topics.route("new") == Topic("new", 4, 4, 6)


@pytest.mark.parametrize("method", ["create", "alter", "describe", "delete"])
def test_a_refusal_is_the_exception_of_its_reason(writer: AdminWriter, topics: Topics, method: str) -> None:
    with pytest.raises(TopicNotFoundError) as refused:
        getattr(topics, method)("other")
    assert refused.value.facts == {"topic": "other"}
    assert len(writer.requests) == 1, "a refusal is not repeated"


def test_the_address_is_the_environments_unless_given(writer: AdminWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_WRITER_ADDRESS", writer.address)
    with Topics(timeout_s=20) as topics:
        topics.delete("orders")
    assert [request.name for request in writer.requests] == ["orders"]


def test_connections_of_the_caller_stay_open(writer: AdminWriter) -> None:
    members = StoreMembers(writer.address)
    for _ in range(2):
        with Topics(timeout_s=20, members=members) as topics:
            topics.delete("orders")
    members.close()
    assert len(writer.requests) == 2
