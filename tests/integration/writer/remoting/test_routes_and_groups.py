"""The writer as a name server, and as one of the two brokers of consumer groups."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.integration.writer.harness import RunningWriter
from tests.remoting_client import RemotingClient
from tests.unit.remoting.frames import binary_header_bytes, frame_bytes
from tidemark.remoting.groups import parse_consumer_list
from tidemark.remoting.heartbeats import (
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
    heartbeat_body,
)
from tidemark.remoting.routes import parse_route
from tidemark.v1 import topics_pb2

from .conftest import LISTEN
from .test_sends import asked, sent

pytestmark = pytest.mark.integration

BOTH: dict[str, Any] = {
    "writer_remoting_listen": LISTEN,
    "query_remoting_address": "127.0.0.1:10912",
    "store_name": "store-7",
    "cluster_name": "cluster-7",
}


def route(client: RemotingClient, topic: str) -> dict[str, tuple[str, int, int, int]] | None:
    """Return address, permission, read and write queues by broker name; None for an unknown topic."""
    answer = client.call(105, {"topic": topic})
    if answer.code:
        assert (answer.code, answer.remark) == (17, f"No topic route info in name server for the topic: {topic}")
        return None
    found = parse_route(answer.body)
    addresses = {broker.broker_name: broker.broker_addrs[0] for broker in found.brokers}
    assert {broker.cluster for broker in found.brokers} <= {"cluster-7"}
    return {
        queue.broker_name: (addresses[queue.broker_name], queue.perm, queue.read_queue_nums, queue.write_queue_nums)
        for queue in found.queues
    }


def test_routes_name_the_writer_to_send_to_and_the_query_service_to_read_from(tmp_path: Path) -> None:
    """Also before the first message: for the topic that stands for new ones, and for retries."""
    with RunningWriter(tmp_path, **BOTH) as writer, RemotingClient(writer.remoting_port) as client:
        own = f"127.0.0.1:{writer.remoting_port}"
        assert route(client, "orders") is None
        assert route(client, "TBW102") == {"store-7": (own, 3, 4, 4), "store-7-r": ("127.0.0.1:10912", 5, 4, 4)}
        assert route(client, "%RETRY%any") == {"store-7": (own, 2, 1, 1), "store-7-r": ("127.0.0.1:10912", 4, 1, 1)}
        sent(client, asked("orders"))
        created = route(client, "orders")
        assert created is not None
        assert {name: values[1] & 6 for name, values in created.items()} == {"store-7": 2, "store-7-r": 4}
        writer.topics.AlterTopic(topics_pb2.AlterTopicRequest(name="orders", permission=4, read_queue_count=2))
        assert route(client, "orders") == {"store-7-r": ("127.0.0.1:10912", 4, 2, 4)}
        writer.topics.AlterTopic(topics_pb2.AlterTopicRequest(name="orders", permission=2, write_queue_count=3))
        assert route(client, "orders") == {"store-7": (own, 2, 2, 3)}
        writer.topics.DeleteTopic(topics_pb2.DeleteTopicRequest(name="orders"))
        assert route(client, "orders") is None


def test_without_automatic_creation_the_topic_for_new_ones_has_no_route(tmp_path: Path) -> None:
    with (
        RunningWriter(tmp_path, auto_create_topics=False, **BOTH) as writer,
        RemotingClient(writer.remoting_port) as client,
    ):
        assert route(client, "TBW102") is None


def test_a_writer_alone_is_the_only_broker(writer: RunningWriter, client: RemotingClient) -> None:
    sent(client, asked("orders"))
    answer = client.call(105, {"topic": "orders"})
    assert [broker.broker_name for broker in parse_route(answer.body).brokers] == ["tidemark-0"]


@pytest.mark.parametrize("is_binary", [False, True], ids=["JSON", "ROCKETMQ"])
def test_gos_client_gets_a_route_in_valid_json(writer: RunningWriter, client: RemotingClient, is_binary: bool) -> None:
    """Version 317; a broker of RocketMQ answers it without quotes around keys."""
    sent(client, asked("orders"))
    if is_binary:
        header = binary_header_bytes(105, 9, 317, 77, 0, b"", (b"topic", b"orders"))
    else:
        header = orjson.dumps(
            {"code": 105, "language": "GO", "version": 317, "opaque": 77, "flag": 0, "extFields": {"topic": "orders"}}
        )
    client.socket.sendall(frame_bytes(header, serialization=int(is_binary)))
    answer = client.receive()
    assert (answer.code, answer.opaque) == (0, 77)
    assert orjson.loads(answer.body)["brokerDatas"][0]["brokerAddrs"].keys() == {"0"}
    assert not set(bytes(answer.body)) & set(b" \n")


def test_a_storm_of_route_requests_is_answered(writer: RunningWriter, client: RemotingClient) -> None:
    """More than the limit of requests in work, from several connections."""
    sent(client, asked("orders"))
    clients = [RemotingClient(writer.remoting_port) for _ in range(5)]
    for one in clients:
        for number in range(2_000):
            one.send(105, {"topic": "orders" if number % 2 else f"unknown-{number}"})
    for one in clients:
        with one:
            codes = [one.receive().code for _ in range(2_000)]
            assert (codes.count(0), codes.count(17)) == (1_000, 1_000)
    sent(client, asked("orders"))


def heartbeat(client: RemotingClient, client_id: str, group: str = "g") -> None:
    subscription = SubscriptionData("orders", "*", 1)
    consumer = ConsumerData(group, ConsumeType.CONSUME_PASSIVELY, MessageModel.CLUSTERING, "", (subscription,))
    answer = client.call(34, body=heartbeat_body(HeartbeatData(client_id, ("CLIENT_INNER_PRODUCER",), (consumer,))))
    assert (answer.code, answer.fields) == (0, {})


def members(client: RemotingClient, group: str = "g") -> list[str]:
    answer = client.call(38, {"consumerGroup": group})
    if answer.code:
        assert (answer.code, answer.remark) == (1, f"no consumer for this group, {group}")
        return []
    return sorted(parse_consumer_list(answer.body))


def until_members(client: RemotingClient, expected: list[str]) -> None:
    deadline = time.monotonic() + 20
    while members(client) != expected:
        assert time.monotonic() < deadline, members(client)
        time.sleep(0.01)


def test_members_come_and_go_with_their_connections(writer: RunningWriter, client: RemotingClient) -> None:
    """A killed member is gone at once, and the others get a notice of it."""
    heartbeat(client, "a")
    assert members(client) == ["a"]
    with RemotingClient(writer.remoting_port) as other, RemotingClient(writer.remoting_port) as again:
        heartbeat(other, "b")
        heartbeat(again, "b")
        assert members(client) == ["a", "b"]
        other.close()
        time.sleep(0.1)
        assert members(client) == ["a", "b"]
    until_members(client, ["a"])
    while not client.notices:
        client.notices.append(client.next_frame())
    assert {(notice.code, notice.fields["consumerGroup"]) for notice in client.notices} == {(40, "g")}


def test_after_a_restart_members_stay_in_the_list_until_they_are_back(tmp_path: Path) -> None:
    """Also after a second restart in between: the second writer does not hear of b."""
    for number in range(3):
        with (
            RunningWriter(tmp_path, writer_remoting_listen=LISTEN) as writer,
            RemotingClient(writer.remoting_port) as a,
            RemotingClient(writer.remoting_port) as b,
        ):
            heartbeat(a, "a")
            heartbeat(a, "x", "new")
            assert members(a) == (["a", "b"] if number > 0 else ["a"])
            assert members(a, "new") == ["x"]
            if number != 1:
                heartbeat(b, "b")
                assert members(a) == ["a", "b"]
            writer.stop()  # before the connections close
