"""The settings that both services share."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tidemark.remoting_server.settings import RemotingSettings, RouteAddresses, require_address


@pytest.mark.parametrize("value", ["", "127.0.0.1:0", "0.0.0.0:10911", "[::1]:10911", "localhost:65535"])
def test_an_address_to_listen_on_is_accepted(value: str) -> None:
    require_address("writer_remoting_listen", value, is_route=False)


@pytest.mark.parametrize("value", ["localhost", ":10911", "x:", "x:-1", "x:65536", "x:٣", "x:1e3"])
def test_an_address_that_is_none_is_refused_by_name(value: str) -> None:
    with pytest.raises(ValueError, match="writer_remoting_listen is "):
        require_address("writer_remoting_listen", value, is_route=False)


@pytest.mark.parametrize("value", ["[::1]:10911", "::1:10911", "a b:1", "a,b:1", "host:0"])
def test_an_address_that_go_cannot_parse_is_no_route(value: str) -> None:
    with pytest.raises(ValueError, match="host name or an IPv4 address"):
        require_address("writer_remoting_address", value, is_route=True)


@pytest.mark.parametrize("name", ["writer_remoting_listen", "query_remoting_listen", "writer_remoting_address",
                                  "query_remoting_address"])  # fmt: skip
def test_each_address_is_checked(name: str) -> None:
    RemotingSettings(**{name: "host:1"}).check_remoting()  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=name):
        RemotingSettings(**{name: "nowhere"}).check_remoting()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, RouteAddresses(None, None)),
        ({"writer_remoting_listen": "10.0.0.1:10911"}, RouteAddresses("10.0.0.1:10911", None)),
        ({"writer_remoting_listen": "0.0.0.0:10911"}, RouteAddresses("127.0.0.1:10911", None)),
        ({"query_remoting_listen": "[::]:10912"}, RouteAddresses(None, "127.0.0.1:10912")),
        ({"writer_remoting_listen": "w:0"}, RouteAddresses("w:7", None)),
        ({"query_remoting_listen": "q:0"}, RouteAddresses(None, None)),
        ({"query_remoting_address": "q.example:1"}, RouteAddresses(None, "q.example:1")),
        (
            {"writer_remoting_listen": "0.0.0.0:1", "writer_remoting_address": "w.example:9"},
            RouteAddresses("w.example:9", None),
        ),
    ],
)
def test_routes_have_the_given_address_or_the_one_to_listen_on(
    settings: dict[str, str], expected: RouteAddresses
) -> None:
    """A port 0 becomes the bound one, which only the caller's own server knows."""
    assert RemotingSettings(**settings).route_addresses(writer_port=7) == expected  # type: ignore[arg-type]


def test_limits_are_in_seconds() -> None:
    limits = RemotingSettings(
        remoting_max_connections=1,
        remoting_max_frame_bytes=4_096,
        remoting_frame_timeout_ms=250,
        remoting_idle_timeout_ms=1_500,
        remoting_write_timeout_ms=500,
        remoting_max_in_flight=6,
        remoting_max_unsent_bytes=2_048,
        remoting_max_incomplete_bytes=70_000,
    ).connection_limits
    assert limits == (1, 4_096, 0.25, 1.5, 0.5, 6, 2_048, 70_000)


def test_default_limits_are_those_of_the_documentation() -> None:
    assert RemotingSettings().connection_limits == (16_384, 16 << 20, 60.0, 120.0, 20.0, 1_024, 8 << 20, 256 << 20)
    with pytest.raises(ValidationError):
        RemotingSettings(remoting_max_in_flight=0)
