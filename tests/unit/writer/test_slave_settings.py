"""Settings of a writer whose log slaves of RocketMQ copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from services.writer.config import WriterSettings

SERVED: dict[str, Any] = {"slaves_listen": "127.0.0.1:10913", "writer_remoting_listen": "127.0.0.1:10911"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"follow": "rocketmq://h:9876/b"}, "slaves_listen is set, and follow, too"),
        ({"access_file": Path("a.yml")}, "slaves_listen is set, and access_file, too"),
        ({"tls_cert": Path("c"), "tls_key": Path("k")}, "slaves_listen is set, and tls_cert, too"),
        (
            {"replication": "sync", "member": "a", "group_members": "a=h:1,b=h:2"},
            "slaves_listen is set, and replication, too",
        ),
        ({"writer_remoting_listen": ""}, "requires writer_remoting_listen with a port above 2"),
        ({"writer_remoting_listen": "127.0.0.1:0"}, "requires writer_remoting_listen with a port above 2"),
        ({"slaves_listen": "nowhere"}, "slaves_listen is 'nowhere': expected address:port"),
        ({"slaves_address": "h:0"}, "slaves_address is 'h:0': expected host:port"),
    ],
)
def test_contradictions_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        WriterSettings(**{**SERVED, **settings})


@pytest.mark.parametrize(
    ("settings", "address"),
    [({}, "127.0.0.1:10913"), ({"slaves_listen": "0.0.0.0:0"}, "127.0.0.1:4711"), ({"slaves_address": "h:1"}, "h:1")],
)
def test_the_address_for_slaves(settings: dict[str, Any], address: str) -> None:
    assert WriterSettings(**{**SERVED, **settings}).slave_address(4711) == address
