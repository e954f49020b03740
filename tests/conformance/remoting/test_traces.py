"""Exchanges of real clients with a real broker, line by line.

Expectations are taken from the captured JSON by the standard library, not by the code under test.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.remoting.traces import FOLDER, Exchange, exchanges
from tests.unit.remoting.frames import frame_bytes
from tidemark.errors import FieldIllegalError
from tidemark.format.host import encode_host
from tidemark.format.message_id import decode_offset_message_id
from tidemark.remoting import Frame, Language, Serialization, answer_to, decode, encode, split
from tidemark.remoting.field_table import FieldTable
from tidemark.remoting.groups import (
    CONSUMER_GROUP,
    UNREGISTER_CLIENT,
    BrokerQueue,
    QueueLock,
    consumer_list_body,
    locked_queues_body,
    parse_consumer_list,
    parse_locked_queues,
    parse_queue_lock,
)
from tidemark.remoting.heartbeats import parse_client_config, parse_heartbeat
from tidemark.remoting.offset_answers import (
    OFFSET_ANSWER,
    QUERY_MESSAGE_ANSWER,
    STORE_TIME_ANSWER,
    OffsetAnswer,
    QueryMessageAnswer,
    StoreTimeAnswer,
)
from tidemark.remoting.offsets import (
    MAX_OFFSET,
    QUERY_CONSUMER_OFFSET,
    QUERY_MESSAGE,
    QUEUE_REQUEST,
    SEARCH_OFFSET,
    UPDATE_CONSUMER_OFFSET,
    VIEW_MESSAGE,
)
from tidemark.remoting.pulling import PULL_ANSWER, PULL_REQUEST, PullMessageAnswer
from tidemark.remoting.routes import (
    ROUTE_REQUEST,
    BrokerData,
    Door,
    QueueData,
    TopicRoute,
    parse_route,
    route_body,
    two_door_route,
)
from tidemark.remoting.send_back import SEND_BACK
from tidemark.remoting.sending import SendAnswer, join_message_ids, parse_send, send_answer_fields, to_fields

pytestmark = pytest.mark.conformance

SHA256 = {
    "from-server.jsonl": "03f5d4e5000bc52c5eb986234db8f7d08eaf5dd13df6da685e3c9a4114561c27",
    "go-v2.1.3.jsonl": "488361dad19650c48cf99e44f92594bf2bc0da5d813adfd38e8595e9410e5277",
    "java-5.3.3.jsonl": "0fd0fcfb3f61b3f81686d2e9ca6d78d4ba8f07a203ee7fdf94304e02a430b094",
    "raw.jsonl": "94f3562ade6bece80717f2f2e58700b334a9417b3c8eb963319921239244575d",
    "route-a-two-names.json": "34388b722c39ac0ceeede525255769c37f4f16188a5c6a39889a2b917ebd53bf",
    "route-b-master-slave.json": "88312aa5ce4afe92c53d064ed0ad9a1b16ccc03d988888e0954b0e2554231764",
}
TABLES: dict[int, FieldTable[Any]] = {
    11: PULL_REQUEST,
    361: PULL_REQUEST,
    12: QUERY_MESSAGE,
    14: QUERY_CONSUMER_OFFSET,
    15: UPDATE_CONSUMER_OFFSET,
    29: SEARCH_OFFSET,
    30: MAX_OFFSET,
    31: QUEUE_REQUEST,
    32: QUEUE_REQUEST,
    33: VIEW_MESSAGE,
    35: UNREGISTER_CLIENT,
    36: SEND_BACK,
    38: CONSUMER_GROUP,
    40: CONSUMER_GROUP,
    105: ROUTE_REQUEST,
}
SENDS = (10, 310, 320)
BODIES = (34, 41, 42, 46)  # these requests have their values in the body
NOT_OFFERED = {37, 370, 400, 9999, 200050}
IGNORED = {"bname", "ReqT"}

EXCHANGES = list(exchanges())
every_exchange = pytest.mark.parametrize("exchange", EXCHANGES, ids=[exchange.name for exchange in EXCHANGES])


def without_empty(header: dict[str, Any]) -> dict[str, Any]:
    """Return *header* without an empty remark and empty fields, which mean the same as none."""
    rest = {name: value for name, value in header.items() if name not in ("remark", "extFields") or value}
    return {**rest, "serializeTypeCurrentRPC": "JSON"}


def header_of(wire: bytes) -> Any:
    size = int.from_bytes(wire[5:8], "big")
    return json.loads(wire[8 : 8 + size])


def asked(exchange: Exchange) -> Frame:
    return decode(frame_bytes(json.dumps(exchange.request).encode(), exchange.body or b""))


@pytest.mark.parametrize("name", SHA256)
def test_files_have_not_changed(name: str) -> None:
    assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == SHA256[name]


def test_no_file_is_without_a_test() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*SHA256, "README.md"}
    assert len(EXCHANGES) == 46 + 24 + 74 + 1
    seen = {exchange.code for exchange in EXCHANGES}
    assert seen == {*TABLES, *SENDS, *BODIES, *NOT_OFFERED}


@every_exchange
def test_request_is_decoded_with_its_values(exchange: Exchange) -> None:
    wire = frame_bytes(json.dumps(exchange.request).encode(), exchange.body or b"")
    assert split(wire) == ([(0, len(wire))], len(wire))
    frame, captured = decode(wire), exchange.request
    assert (frame.code, frame.flag, frame.opaque) == (captured["code"], captured["flag"], captured["opaque"])
    assert (frame.language.name, frame.version) == (captured["language"], captured["version"])
    assert (frame.remark, frame.fields) == (captured.get("remark", ""), exchange.fields)
    assert (frame.body, frame.serialization) == (exchange.body or b"", Serialization.JSON)


@every_exchange
def test_request_is_encoded_with_its_values_in_both_forms(exchange: Exchange) -> None:
    frame = asked(exchange)
    assert header_of(encode(frame)) == without_empty({**exchange.request, "extFields": exchange.fields})
    assert decode(encode(frame)) == frame
    if frame.code < 1 << 15:  # the binary form has 16 bits for it
        binary = dataclasses.replace(frame, serialization=Serialization.ROCKETMQ)
        assert decode(encode(binary)) == binary


@every_exchange
def test_answer_is_encoded_with_its_values(exchange: Exchange) -> None:
    if exchange.answer is None:
        assert asked(exchange).is_one_way
        return
    captured = exchange.answer
    answer = answer_to(asked(exchange), captured["code"], captured.get("remark", ""), captured.get("extFields"))
    assert header_of(encode(answer)) == without_empty(captured)
    found = decode(frame_bytes(json.dumps(captured).encode()))
    assert (found.is_answer, found.language, found.version) == (True, Language.JAVA, 479)
    assert found == answer


@every_exchange
def test_fields_of_a_request_are_read_and_written(exchange: Exchange) -> None:
    """Each captured field returns with its value; written fields that were not captured have the default."""
    if exchange.name.endswith("no topic field"):
        with pytest.raises(FieldIllegalError, match=r"^topic is missing"):
            parse_send(exchange.code, exchange.fields)
    elif exchange.code in SENDS:
        written = to_fields(exchange.code, parse_send(exchange.code, exchange.fields))
        assert written.items() >= exchange.fields.items()
    elif exchange.code in TABLES:
        table = TABLES[exchange.code]
        written = table.write(table.read(exchange.fields))
        kept = {name: value for name, value in exchange.fields.items() if name not in IGNORED}
        assert written.items() >= kept.items()
    else:
        assert exchange.code in {*BODIES, *NOT_OFFERED}


def of_send(fields: dict[str, str]) -> dict[str, str]:
    ids = [decode_offset_message_id(one) for one in fields["msgId"].split(",")]
    return send_answer_fields(
        SendAnswer(
            int(fields["queueId"]),
            int(fields["queueOffset"]),
            join_message_ids(encode_host(ids[0].store_host), [one.physical_offset for one in ids]),
            fields.get("transactionId"),
            trace_on=True,
        )
    )


def of_pull(fields: dict[str, str]) -> dict[str, str]:
    return PULL_ANSWER.write(
        PullMessageAnswer(int(fields["nextBeginOffset"]), int(fields["minOffset"]), int(fields["maxOffset"]))
    )


def of_offset(fields: dict[str, str]) -> dict[str, str]:
    return OFFSET_ANSWER.write(OffsetAnswer(int(fields["offset"])))


def of_store_time(fields: dict[str, str]) -> dict[str, str]:
    return STORE_TIME_ANSWER.write(StoreTimeAnswer(int(fields["timestamp"])))


def of_key(fields: dict[str, str]) -> dict[str, str]:
    return QUERY_MESSAGE_ANSWER.write(
        QueryMessageAnswer(int(fields["indexLastUpdateTimestamp"]), int(fields["indexLastUpdatePhyoffset"]))
    )


ANSWERS: dict[tuple[int, int], Callable[[dict[str, str]], dict[str, str]]] = {  # by request and answer code
    **dict.fromkeys([(code, 0) for code in SENDS], of_send),
    **dict.fromkeys([(code, answer) for code in (11, 361) for answer in (0, 19, 20, 21)], of_pull),
    **dict.fromkeys([(code, 0) for code in (14, 29, 30, 31)], of_offset),
    (32, 0): of_store_time,
    (12, 0): of_key,
    (12, 22): of_key,
}
LEFT_OUT = {"IS_SUPPORT_HEART_BEAT_V2", "IS_SUB_CHANGE", "TRACE_ON", "MSG_REGION"}  # on refusals and heartbeats


@every_exchange
def test_fields_of_an_answer_are_written_from_typed_values(exchange: Exchange) -> None:
    write = ANSWERS.get((exchange.code, exchange.answer_code or 0))
    if write and exchange.answer:
        assert write(exchange.answer_fields) == exchange.answer_fields
    elif exchange.code not in NOT_OFFERED:
        assert exchange.answer_fields.keys() <= LEFT_OUT


@every_exchange
def test_bodies_are_read_and_written(exchange: Exchange) -> None:
    expected = json.loads(exchange.body) if exchange.body else {}
    match exchange.code:
        case 34:
            assert exchange.body is not None
            check_heartbeat(exchange.body, expected)
        case 46:
            assert exchange.body is not None
            config = parse_client_config(exchange.body)
            assert (config.client_id, config.group) == (expected["clientId"], expected["group"])
            assert config.subscription == subscription_of(expected["subscriptionData"])
        case 41 | 42:
            assert exchange.body is not None
            queues = tuple(BrokerQueue(**snake_case(one)) for one in expected["mqSet"])
            lock = QueueLock(expected["clientId"], expected["consumerGroup"], queues)
            assert parse_queue_lock(exchange.body) == lock
            if exchange.answer_body:
                assert locked_queues_body(parse_locked_queues(exchange.answer_body)) == exchange.answer_body
        case 38 if exchange.answer_body:
            ids = json.loads(exchange.answer_body)["consumerIdList"]
            assert parse_consumer_list(exchange.answer_body) == tuple(ids)
            assert consumer_list_body(ids) == exchange.answer_body
        case 105 if exchange.answer_body and b"{0:" in exchange.answer_body:
            with pytest.raises(FieldIllegalError):
                parse_route(exchange.answer_body)
        case 105 if exchange.answer_body:
            assert route_body(parse_route(exchange.answer_body)) == exchange.answer_body


def snake_case(queue: dict[str, Any]) -> dict[str, Any]:
    return {"broker_name": queue["brokerName"], "queue_id": queue["queueId"], "topic": queue["topic"]}


def subscription_of(data: dict[str, Any]) -> tuple[object, ...]:
    return (data["topic"], data["subString"], data["subVersion"], data["expressionType"])


def check_heartbeat(body: bytes, expected: dict[str, Any]) -> None:
    found = parse_heartbeat(body)
    assert found.client_id == expected["clientID"]
    assert list(found.producer_groups) == [one["groupName"] for one in expected["producerDataSet"]]
    assert [
        (one.group, one.consume_type, one.message_model, one.consume_from_where, list(one.subscriptions))
        for one in found.consumers
    ] == [
        (
            one["groupName"],
            one["consumeType"],
            one["messageModel"],
            one["consumeFromWhere"],
            list(map(subscription_of, one["subscriptionDataSet"])),
        )
        for one in expected["consumerDataSet"]
    ]


def test_route_of_two_names_is_the_captured_one() -> None:
    route = two_door_route(
        cluster="peer",
        writer=Door("broker-a", "127.0.0.1:30911"),
        reader=Door("broker-a-r", "127.0.0.1:30912"),
        read_queue_nums=4,
        write_queue_nums=4,
    )
    text = (FOLDER / "route-a-two-names.json").read_bytes().strip()
    assert route_body(route) == text
    assert parse_route(text) == route


def test_route_of_one_name_with_two_ids_is_the_captured_one() -> None:
    route = TopicRoute(
        (BrokerData("broker-a", "peer", {0: "127.0.0.1:30911", 1: "127.0.0.1:30912"}),),
        (QueueData("broker-a", 6, 4, 4),),
    )
    text = (FOLDER / "route-b-master-slave.json").read_bytes().strip()
    assert route_body(route) == text
    assert parse_route(text) == route
