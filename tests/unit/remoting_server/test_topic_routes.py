"""The routes of topics: two broker names, the topic of producers of unknown topics, and retry topics."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.unit.remoting_server.served import run, serving
from tidemark.remoting import Frame, RequestCode, encode
from tidemark.remoting.codes import Language, Serialization
from tidemark.remoting.routes import parse_route
from tidemark.remoting_server.settings import RouteAddresses
from tidemark.remoting_server.topic_routes import TopicRoutes
from tidemark.store.originals.topics import TopicConfig

TOPICS = {
    "orders": TopicConfig("orders", 3, 5),
    "written": TopicConfig("written", 4, 4, permission=2),
    "read": TopicConfig("read", 4, 4, permission=4),
    "closed": TopicConfig("closed", 4, 4, permission=0),
}
BOTH = RouteAddresses("w.example:1", "10.0.0.2:2")


def routes(addresses: RouteAddresses = BOTH, default_queues: int = 8) -> TopicRoutes:
    return TopicRoutes(TOPICS.get, addresses, store_name="store-0", cluster="cluster-0", default_queues=default_queues)


def asked(topic: str | None, made: TopicRoutes | None = None, frame: Frame | None = None) -> Frame:
    """Return the answer to a request for the route of *topic*."""
    answers: list[Frame] = []
    fields = {} if topic is None else {"topic": topic}

    async def test() -> None:
        async with serving({RequestCode.GET_ROUTEINFO_BY_TOPIC: (made or routes()).answer}) as served:
            client = await served.client()
            if frame is None:
                await client.send(RequestCode.GET_ROUTEINFO_BY_TOPIC, fields)
            else:
                await client.send_bytes(encode(frame))
            answers.append(await client.receive())

    run(test)
    return answers[0]


def brokers_of(answer: Frame) -> dict[str, tuple[str, int, int, int]]:
    """Return address, permission, read and write queues by broker name."""
    assert answer.code == 0, answer.remark
    route = parse_route(answer.body)
    addresses = {broker.broker_name: broker.broker_addrs[0] for broker in route.brokers}
    return {
        queue.broker_name: (addresses[queue.broker_name], queue.perm, queue.read_queue_nums, queue.write_queue_nums)
        for queue in route.queues
    }


def test_a_route_has_the_exact_bytes_of_the_protocol() -> None:
    """Go's client parses them by hand: no white space, quoted keys."""
    answer = asked("orders")
    assert bytes(answer.body) == (
        b'{"brokerDatas":[{"brokerAddrs":{"0":"w.example:1"},"brokerName":"store-0","cluster":"cluster-0",'
        b'"enableActingMaster":false},{"brokerAddrs":{"0":"10.0.0.2:2"},"brokerName":"store-0-r",'
        b'"cluster":"cluster-0","enableActingMaster":false}],"filterServerTable":{},"queueDatas":['
        b'{"brokerName":"store-0","perm":2,"readQueueNums":3,"topicSysFlag":0,"writeQueueNums":5},'
        b'{"brokerName":"store-0-r","perm":4,"readQueueNums":3,"topicSysFlag":0,"writeQueueNums":5}]}'
    )
    assert answer.fields == {}


@pytest.mark.parametrize(
    ("topic", "addresses", "names"),
    [
        ("orders", BOTH, {"store-0": 2, "store-0-r": 4}),
        ("orders", RouteAddresses("w:1", None), {"store-0": 2}),
        ("orders", RouteAddresses(None, "r:1"), {"store-0-r": 4}),
        ("written", BOTH, {"store-0": 2}),
        ("read", BOTH, {"store-0-r": 4}),
        ("closed", BOTH, {}),
        ("%RETRY%never-heard-of", BOTH, {"store-0": 2, "store-0-r": 4}),
        ("TBW102", BOTH, {"store-0": 3, "store-0-r": 5}),
    ],
)
def test_each_broker_name_has_only_its_own_permission(
    topic: str, addresses: RouteAddresses, names: dict[str, int]
) -> None:
    found = brokers_of(asked(topic, routes(addresses)))
    assert {name: values[1] for name, values in found.items()} == names


def test_queues_are_those_of_the_topic_or_of_the_topic_that_will_be_created() -> None:
    assert {values[2:] for values in brokers_of(asked("orders")).values()} == {(3, 5)}
    assert {values[2:] for values in brokers_of(asked("TBW102")).values()} == {(8, 8)}
    assert {values[2:] for values in brokers_of(asked("%RETRY%g")).values()} == {(1, 1)}


@pytest.mark.parametrize("topic", ["unknown", "", None, "../x", "%RETRYg", "a b", "x" * 300])
def test_an_unknown_topic_has_no_route(topic: str | None) -> None:
    answer = asked(topic)
    assert answer.code == 17
    assert answer.remark.startswith(f"No topic route info in name server for the topic: {(topic or '')[:200]}")


def test_without_automatic_creation_producers_of_unknown_topics_get_no_route() -> None:
    """Java's producer then fails at once instead of after three tries."""
    assert asked("TBW102", routes(default_queues=0)).code == 17


@pytest.mark.parametrize("serialization", Serialization)
def test_a_client_of_an_old_version_gets_valid_json(serialization: Serialization) -> None:
    """Go's client has version 317. A binary header is answered in JSON, too."""
    frame = Frame(105, 0, 9, Language.GO, 317, "", {"topic": "orders"}, b"", serialization)
    answer = asked("orders", frame=frame)
    assert answer.serialization is Serialization.JSON
    assert (answer.opaque, answer.version) == (9, 479)
    body: Any = orjson.loads(answer.body)
    assert body["brokerDatas"][0]["brokerAddrs"] == {"0": "w.example:1"}


def test_the_remark_about_a_very_long_topic_is_short() -> None:
    """A control character takes six bytes in JSON: the whole name would not fit into a header."""
    frame = Frame(105, 0, 9, Language.GO, 317, "", {"topic": "\x01" * 900_000}, b"", Serialization.ROCKETMQ)
    answer = asked("", frame=frame)
    assert (answer.code, len(answer.remark)) == (17, 1_000)
