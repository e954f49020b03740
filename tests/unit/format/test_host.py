"""Hosts as records store them."""

from __future__ import annotations

import pytest

from tests import builders
from tidemark.format.host import Host, decode_host, encode_host, parse_host


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("127.0.0.1:8081", Host("127.0.0.1", 8081)),
        ("[::1]:8081", Host("::1", 8081)),
        ("[1050:0:0:0:5:600:300c:326b]:1", Host("1050::5:600:300c:326b", 1)),
    ],
)
def test_a_host_survives_text_and_bytes_conversion(text: str, host: Host) -> None:
    """A host has eight or twenty bytes; the text form is the usual one."""
    assert parse_host(text) == host
    assert decode_host(encode_host(host)) == host
    assert parse_host(str(host)) == host


def test_the_encoded_hosts_equal_those_of_the_builders() -> None:
    """An address is followed by a port of four bytes."""
    assert encode_host(Host("192.168.7.65", 10911)) == builders.STORE_HOST
    assert encode_host(Host("::1", 54321)) == builders.BORN_HOST_V6


@pytest.mark.parametrize("text", ["", "127.0.0.1", "localhost:1", "127.0.0.1:", "127.0.0.1:x", ":1", "[::1]"])
def test_an_invalid_host_text_is_refused(text: str) -> None:
    """Names are not resolved."""
    with pytest.raises(ValueError, match=r".+"):
        parse_host(text)
