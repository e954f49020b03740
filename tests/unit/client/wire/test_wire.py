from __future__ import annotations

import pytest

from tidemark.client.wire.wire import checked_wire, default_wire
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
