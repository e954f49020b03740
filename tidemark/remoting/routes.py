"""The route of a topic (105): brokers with their addresses, and each broker's queues."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from tidemark.remoting.field_table import BOOLEAN, TEXT, FieldTable, HeaderField, field_illegal
from tidemark.remoting.frame import Buffer
from tidemark.remoting.json_body import JsonObject, parse_body

PERM_READ, PERM_WRITE, PERM_INHERIT = 4, 2, 1  # bits of QueueData.perm
MASTER = 0  # broker id to which producers send


class RouteRequest(NamedTuple):
    """The fields of the request. RocketMQ answers a missing topic as an unknown one."""

    topic: str | None = None
    accept_standard_json_only: bool = False


ROUTE_REQUEST = FieldTable(
    RouteRequest,
    HeaderField("topic", "topic", TEXT),
    HeaderField("accept_standard_json_only", "acceptStandardJsonOnly", BOOLEAN),
)


class BrokerData(NamedTuple):
    """A broker name, and `host:port` by broker id."""

    broker_name: str
    cluster: str
    broker_addrs: dict[int, str]


class QueueData(NamedTuple):
    """The queues that a broker name has for the topic."""

    broker_name: str
    perm: int
    read_queue_nums: int
    write_queue_nums: int
    topic_sys_flag: int = 0


class TopicRoute(NamedTuple):
    """The brokers and queues of a topic."""

    brokers: tuple[BrokerData, ...]
    queues: tuple[QueueData, ...]


class Door(NamedTuple):
    """A broker name and its address."""

    broker_name: str
    address: str


def two_door_route(
    *, cluster: str, writer: Door, reader: Door, read_queue_nums: int, write_queue_nums: int
) -> TopicRoute:
    """Return the route of a topic with one name to write to and another to read from."""
    return TopicRoute(
        tuple(BrokerData(door.broker_name, cluster, {MASTER: door.address}) for door in (writer, reader)),
        (
            QueueData(writer.broker_name, PERM_WRITE, read_queue_nums, write_queue_nums),
            QueueData(reader.broker_name, PERM_READ, read_queue_nums, write_queue_nums),
        ),
    )


def route_body(route: TopicRoute) -> bytes:
    """Return the body of an answer: keys are quoted, and there is no white space.

    Raises:
        ValueError: Go's client cannot read an address, because it is an IPv6 literal or has a space or comma.
    """
    for broker in route.brokers:
        for address in broker.broker_addrs.values():
            if address.count(":") != 1 or any(character in address for character in ' ,[]"'):
                raise ValueError(f"address {address!r} must be host:port, with a host name or an IPv4 address")
    brokers = [
        {
            "brokerAddrs": {str(number): address for number, address in broker.broker_addrs.items()},
            "brokerName": broker.broker_name,
            "cluster": broker.cluster,
            "enableActingMaster": False,
        }
        for broker in route.brokers
    ]
    queues = [
        {
            "brokerName": queue.broker_name,
            "perm": queue.perm,
            "readQueueNums": queue.read_queue_nums,
            "topicSysFlag": queue.topic_sys_flag,
            "writeQueueNums": queue.write_queue_nums,
        }
        for queue in route.queues
    ]
    return orjson.dumps({"brokerDatas": brokers, "filterServerTable": {}, "queueDatas": queues})


def parse_route(body: Buffer) -> TopicRoute:
    """Parse the body of an answer. Unknown members are ignored.

    Raises:
        FieldIllegalError: a member is missing or illegal, or the body has unquoted keys: a request of version 401 and
            later, or with `acceptStandardJsonOnly`, is answered in standard JSON.
    """
    found = parse_body(body)
    return TopicRoute(
        tuple(
            BrokerData(broker.text("brokerName"), broker.text("cluster"), _addresses(broker.object("brokerAddrs")))
            for broker in found.objects("brokerDatas")
        ),
        tuple(
            QueueData(
                queue.text("brokerName"),
                queue.integer("perm"),
                queue.integer("readQueueNums"),
                queue.integer("writeQueueNums"),
                queue.integer("topicSysFlag", 0),
            )
            for queue in found.objects("queueDatas")
        ),
    )


def _addresses(found: JsonObject) -> dict[int, str]:
    addresses = {}
    for number, address in found.items():
        if not (number.isascii() and number.isdigit() and len(number) < 10):
            raise field_illegal("brokerAddrs", number, "an object with broker ids as names")
        addresses[int(number)] = address
    return addresses
