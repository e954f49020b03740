"""The HTTP listener of metrics."""

from __future__ import annotations

import socket
import urllib.request

import pytest

from tidemark.errors import StoreContradictionError
from tidemark.metrics.address import listen_host
from tidemark.metrics.families import make_registry
from tidemark.metrics.listener import listen


def test_the_registry_is_served_until_it_is_closed() -> None:
    """Port 0 is a free port."""
    server = listen("localhost:0", make_registry(), setting="TIDEMARK_X")
    assert server is not None
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as answer:
            assert b"tidemark_build_info" in answer.read()
    finally:
        server.shutdown()
        server.server_close()


def test_a_taken_port_is_an_error_that_names_the_setting() -> None:
    """The service does not run without its metrics."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(StoreContradictionError, match=r"127\.0\.0\.1:\d+ for metrics \(TIDEMARK_X\)") as raised:
            listen(address, make_registry(), setting="TIDEMARK_X")
    assert raised.value.facts == {"setting": "TIDEMARK_X", "address": address}


def test_an_empty_metrics_address_disables_the_listener() -> None:
    """An address that is no literal is refused."""
    assert listen_host("") is None
    assert listen("", make_registry(), setting="TIDEMARK_X") is None
    with pytest.raises(ValueError, match="does not appear to be an IPv4 or IPv6 address"):
        listen_host("metrics.example:9")
