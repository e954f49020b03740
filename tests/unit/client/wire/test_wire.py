from __future__ import annotations

import pytest

from tidemark.client.wire.wire import checked_wire, default_wire, may_use
from tidemark.errors import ArgumentIllegalError


@pytest.mark.parametrize(("given", "wire"), [(None, "remoting"), ("", "remoting"), ("grpc", "grpc")])
def test_the_default_wire_is_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, given: str | None, wire: str
) -> None:
    monkeypatch.delenv("TIDEMARK_CLIENT_WIRE", raising=False)
    if given is not None:
        monkeypatch.setenv("TIDEMARK_CLIENT_WIRE", given)
    assert default_wire() == wire


@pytest.mark.parametrize("given", ["remoting", "grpc"])
def test_a_wire_is_accepted(given: str) -> None:
    assert checked_wire(given) == given


def test_another_wire_is_refused_with_the_name_of_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentIllegalError, match="wire is 'http': give remoting or grpc") as refused:
        checked_wire("http")
    assert refused.value.facts == {"argument": "wire"}
    monkeypatch.setenv("TIDEMARK_CLIENT_WIRE", "GRPC")
    with pytest.raises(ArgumentIllegalError, match="TIDEMARK_CLIENT_WIRE is 'GRPC'"):
        default_wire()


@pytest.mark.parametrize(
    ("offered", "reached", "may"),
    [
        ("127.0.0.1:10911", "127.0.0.1:8081", True),
        ("127.0.0.1:10911", "tls://localhost:8081", True),
        ("localhost:10911", "[::1]:8081", True),
        ("127.0.0.1:10911", "log.example:8081", False),
        ("127.0.0.1:10911", "tls://10.0.0.7:8081", False),
        ("localhost:10911", "writer", False),
        ("log.example:10911", "127.0.0.1:8081", True),
        ("10.0.0.7:10911", "log.example:8081", True),
    ],
)
def test_a_loopback_address_is_for_clients_on_loopback_only(offered: str, reached: str, may: bool) -> None:
    """On another machine, a different store may use the same port."""
    assert may_use(offered, reached) is may
