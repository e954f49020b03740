"""Routes of topics."""

from __future__ import annotations

import json

import pytest

from tidemark.errors import FieldIllegalError
from tidemark.remoting.routes import (
    ROUTE_REQUEST,
    BrokerData,
    Door,
    QueueData,
    RouteRequest,
    TopicRoute,
    parse_route,
    route_body,
    two_door_route,
)

BODY = {
    "brokerDatas": [
        {
            "brokerAddrs": {"0": "127.0.0.1:30911"},
            "brokerName": "tidemark-0",
            "cluster": "tidemark",
            "enableActingMaster": False,
        },
        {
            "brokerAddrs": {"0": "127.0.0.1:30912"},
            "brokerName": "tidemark-0-r",
            "cluster": "tidemark",
            "enableActingMaster": False,
        },
    ],
    "filterServerTable": {},
    "queueDatas": [
        {"brokerName": "tidemark-0", "perm": 2, "readQueueNums": 4, "topicSysFlag": 0, "writeQueueNums": 4},
        {"brokerName": "tidemark-0-r", "perm": 4, "readQueueNums": 4, "topicSysFlag": 0, "writeQueueNums": 4},
    ],
}
ROUTE = TopicRoute(
    (
        BrokerData("tidemark-0", "tidemark", {0: "127.0.0.1:30911"}),
        BrokerData("tidemark-0-r", "tidemark", {0: "127.0.0.1:30912"}),
    ),
    (QueueData("tidemark-0", 2, 4, 4), QueueData("tidemark-0-r", 4, 4, 4)),
)


def test_two_doors_are_a_name_to_write_and_a_name_to_read() -> None:
    route = two_door_route(
        cluster="tidemark",
        writer=Door("tidemark-0", "127.0.0.1:30911"),
        reader=Door("tidemark-0-r", "127.0.0.1:30912"),
        read_queue_nums=4,
        write_queue_nums=4,
    )
    assert route == ROUTE


def test_body_has_quoted_keys_and_no_white_space() -> None:
    body = route_body(ROUTE)
    assert json.loads(body) == BODY
    assert b'"brokerAddrs":{"0":"127.0.0.1:30911"}' in body
    assert body.translate(None, b"\n\r\t ") == body


def test_both_directions_keep_the_route() -> None:
    assert parse_route(route_body(ROUTE)) == ROUTE
    assert parse_route(json.dumps({**BODY, "orderTopicConf": ""}).encode()) == ROUTE


@pytest.mark.parametrize("address", ["[::1]:30911", "::1", "a,b:1", "a: 1", "host", "a:1:2", 'a":1', ""])
def test_address_that_go_cannot_split_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="must be host:port"):
        route_body(TopicRoute((BrokerData("n", "c", {0: address}),), ()))


def test_route_with_unquoted_keys_is_refused() -> None:
    with pytest.raises(FieldIllegalError, match=r"^body is "):
        parse_route(
            b'{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:1"},"brokerName":"b","cluster":"c"}],"queueDatas":[]}'
        )


@pytest.mark.parametrize("key", ["x", "-1", "", "99999999999", "٣"])
def test_broker_id_that_is_no_number_is_refused(key: str) -> None:
    body = {"brokerDatas": [{"brokerName": "b", "cluster": "c", "brokerAddrs": {key: "h:1"}}], "queueDatas": []}
    with pytest.raises(FieldIllegalError, match=r"^brokerAddrs is "):
        parse_route(json.dumps(body).encode())


def test_route_request_may_lack_its_topic() -> None:
    assert ROUTE_REQUEST.read({}) == RouteRequest(None, False)
    assert ROUTE_REQUEST.read({"topic": "T", "acceptStandardJsonOnly": "true"}) == RouteRequest("T", True)
    assert ROUTE_REQUEST.write(RouteRequest("T", True)) == {"topic": "T", "acceptStandardJsonOnly": "true"}
