from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from services.writer.config import WriterSettings
from services.writer.follow_settings import BrokerUrl, parse_broker_url


def test_a_broker_is_named_by_its_name_servers_and_its_name() -> None:
    assert parse_broker_url("rocketmq://a:9876/broker-a") == BrokerUrl(("a:9876",), "broker-a")
    assert parse_broker_url("rocketmq://a:1;b:2, c:3/x") == BrokerUrl(("a:1", "b:2", "c:3"), "x")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a:9876/broker-a",
        "http://a:9876/broker-a",
        "rocketmq://a/broker-a",
        "rocketmq://a:1",
        "rocketmq://a:1/b/c",
        "rocketmq:///b",
        "rocketmq://a:1/",
        "rocketmq://a:1;/b",
        "rocketmq://a:1/b?ha=c:2",
        "rocketmq://user@a:1/b",
    ],
)
def test_another_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="rocketmq://"):
        parse_broker_url(text)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"follow": "broker-a"}, "address of a broker to follow"),
        ({"follow_access_key": "k"}, "must be set together"),
        ({"follow_access_key": "k", "follow_secret_key_file": "f"}, "follow is not"),
        (
            {"follow": "rocketmq://a:1/b", "replication": "sync", "member": "a", "group_members": "a=h:1,b=h:2"},
            "a member of a group cannot follow a broker",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        WriterSettings(**settings)
