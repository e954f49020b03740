"""Heartbeats and checks of a subscription."""

from __future__ import annotations

import json

import pytest

from tidemark.errors import FieldIllegalError
from tidemark.remoting.heartbeats import (
    ClientConfig,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
    client_config_body,
    heartbeat_body,
    parse_client_config,
    parse_heartbeat,
)

SUBSCRIPTION = {
    "classFilterMode": False,
    "codeSet": [2598919],
    "expressionType": "TAG",
    "subString": "TagA",
    "subVersion": 1795638662606,
    "tagsSet": ["TagA"],
    "topic": "T",
}
CONSUMER = {
    "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
    "consumeType": "CONSUME_PASSIVELY",
    "groupName": "g",
    "messageModel": "CLUSTERING",
    "subscriptionDataSet": [SUBSCRIPTION],
    "unitMode": False,
}
BODY = {
    "clientID": "192.0.2.2@1#2",
    "consumerDataSet": [CONSUMER],
    "producerDataSet": [{"groupName": "CLIENT_INNER_PRODUCER"}],
}
HEARTBEAT = HeartbeatData(
    "192.0.2.2@1#2",
    ("CLIENT_INNER_PRODUCER",),
    (
        ConsumerData(
            "g",
            ConsumeType.CONSUME_PASSIVELY,
            MessageModel.CLUSTERING,
            "CONSUME_FROM_FIRST_OFFSET",
            (SubscriptionData("T", "TagA", 1795638662606),),
        ),
    ),
)


def encoded(body: object) -> bytes:
    return json.dumps(body).encode()


def test_both_directions_have_the_members_of_the_protocol() -> None:
    later = {**BODY, "heartbeatFingerprint": 0, "withoutSub": False}
    assert parse_heartbeat(encoded(later)) == HEARTBEAT
    assert json.loads(heartbeat_body(HEARTBEAT)) == BODY


def test_heartbeat_without_groups_is_legal() -> None:
    assert parse_heartbeat(b'{"clientID":"c"}') == HeartbeatData("c", (), ())
    assert parse_heartbeat(b'{"clientID":"c","consumerDataSet":null}') == HeartbeatData("c", (), ())


def test_hashes_of_a_heartbeat_are_not_read() -> None:
    """Go sends them as texts."""
    body = {**BODY, "consumerDataSet": [{**CONSUMER, "subscriptionDataSet": [{**SUBSCRIPTION, "codeSet": ["1"]}]}]}
    assert parse_heartbeat(encoded(body)) == HEARTBEAT


@pytest.mark.parametrize(
    ("expression", "kind", "tags"), [("*", "TAG", []), ("B || A", "TAG", ["A", "B"]), ("n > 1 || TRUE", "SQL92", [])]
)
def test_written_subscription_lists_the_tags_of_a_tag_expression(expression: str, kind: str, tags: list[str]) -> None:
    body = client_config_body(ClientConfig("c", "g", SubscriptionData("T", expression, 1, kind)))
    assert json.loads(body)["subscriptionData"]["tagsSet"] == tags
    assert len(json.loads(body)["subscriptionData"]["codeSet"]) == len(tags)


@pytest.mark.parametrize(
    ("member", "value", "allowed"),
    [
        ("consumeType", "CONSUME_SLOWLY", "CONSUME_ACTIVELY or CONSUME_PASSIVELY"),
        ("messageModel", "GOSSIP", "CLUSTERING or BROADCASTING"),
        ("groupName", 5, "a text"),
        ("subscriptionDataSet", {}, "an array of objects"),
    ],
)
def test_illegal_member_is_named(member: str, value: object, allowed: str) -> None:
    with pytest.raises(FieldIllegalError, match=f"{member} is .*; it must be {allowed}$"):
        parse_heartbeat(encoded({**BODY, "consumerDataSet": [{**CONSUMER, member: value}]}))


def test_client_config_has_one_subscription() -> None:
    config = ClientConfig("c", "g", SubscriptionData("T", "n > 1", 7, "SQL92"))
    body = {
        "clientId": "c",
        "group": "g",
        "subscriptionData": {
            "topic": "T",
            "subString": "n > 1",
            "subVersion": 7,
            "expressionType": "SQL92",
            "classFilterMode": False,
            "tagsSet": [],
            "codeSet": [],
        },
    }
    assert parse_client_config(encoded(body)) == config
    assert json.loads(client_config_body(config)) == body
    with pytest.raises(FieldIllegalError, match=r"^body\.subscriptionData is missing"):
        parse_client_config(b'{"clientId":"c","group":"g"}')
