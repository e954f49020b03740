"""Errors for wrong addresses name the address and the cause; proxies of the environment are not used."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.fixed_ports import fixed_port
from tests.unit.client.fake_writer import FakeWriter
from tidemark.client import Consumer, Message, Producer, Query, Topics
from tidemark.client.errors.address_faults import require_writer_address
from tidemark.errors import ArgumentIllegalError, QueryUnreachableError, StoreError, WriterUnreachableError

TIMEOUT_S = 8.0
SOON_S = 4.0

Call = Callable[[str], Any]
WRITER_CALLS: dict[str, Call] = {
    "send": lambda address: Producer(address, timeout_s=TIMEOUT_S).send("t", b"x"),
    "send with key": lambda address: Producer(address, timeout_s=TIMEOUT_S).send("t", b"x", key="k"),
    "send to queue": lambda address: Producer(address, timeout_s=TIMEOUT_S).send("t", b"x", queue_id=0),
    "send accumulated": lambda address: Producer(address, timeout_s=TIMEOUT_S, accumulate=True).send("t", b"x"),
    "send batch": lambda address: Producer(address, timeout_s=TIMEOUT_S).send_batch([Message("t", b"x")]),
    "topics.create": lambda address: Topics(address, timeout_s=TIMEOUT_S).create("t"),
    "topics.list_all": lambda address: Topics(address, timeout_s=TIMEOUT_S).list_all(),
    "log_info": lambda address: Producer(address, timeout_s=TIMEOUT_S).log_info(),
}
QUERY_CALLS: dict[str, Call] = {
    "query": lambda url: Query(url, timeout_s=TIMEOUT_S).get("/v1/status"),
    "consumer": lambda url: Consumer("t", url=url, timeout_s=TIMEOUT_S).poll(1),
}


@pytest.fixture(scope="module")
def http_port() -> Iterator[int]:
    """Yield the port of a service that speaks HTTP/1, as the query service does."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the base class's name
        """Keep standard error clean."""


def failure_of(call: Call, address: str) -> tuple[StoreError, float]:
    """Return the error of *call*, and how long it took."""
    began = time.monotonic()
    with pytest.raises(StoreError) as raised:
        call(address)
    return raised.value, time.monotonic() - began


@pytest.mark.parametrize("call", WRITER_CALLS.values(), ids=WRITER_CALLS.keys())
def test_an_http_service_at_the_writer_address_is_reported_immediately(http_port: int, call: Call) -> None:
    error, took_s = failure_of(call, f"127.0.0.1:{http_port}")
    assert isinstance(error, WriterUnreachableError)
    assert f"127.0.0.1:{http_port}" in error.message
    assert "does not speak gRPC" in error.message
    assert took_s < SOON_S


@pytest.mark.parametrize("call", WRITER_CALLS.values(), ids=WRITER_CALLS.keys())
def test_an_unknown_host_is_reported_immediately(call: Call) -> None:
    error, took_s = failure_of(call, "no-such-host.invalid:8081")
    assert isinstance(error, WriterUnreachableError)
    assert "no-such-host.invalid" in error.message
    assert any(cause in error.message for cause in ("unknown", "name not found"))  # the client's words, or gRPC's
    assert took_s < SOON_S


@pytest.mark.parametrize("name", ["send", "send to queue", "topics.create"])
def test_a_refused_connection_is_reported_with_its_address(name: str) -> None:
    """The error comes after the timeout, because a writer may be starting there."""
    address = f"127.0.0.1:{fixed_port()}"
    calls: dict[str, Call] = {
        "send": lambda address: Producer(address, timeout_s=1).send("t", b"x"),
        "send to queue": lambda address: Producer(address, timeout_s=1).send("t", b"x", queue_id=0),
        "topics.create": lambda address: Topics(address, timeout_s=1).create("t"),
    }
    error, took_s = failure_of(calls[name], address)
    assert address in error.message
    assert "refused" in error.message
    assert took_s < SOON_S


def test_a_writer_that_starts_within_the_timeout_gets_the_message() -> None:
    """A refused connection alone is not an error."""
    writer = FakeWriter()
    writer.port = fixed_port()
    with Producer(writer.address, timeout_s=20) as producer:
        future = producer.send_async("t", b"x", queue_id=0)
        time.sleep(1.5)
        writer.start()
        assert future.result().count == 1
    writer.stop()


@pytest.mark.parametrize(
    "address",
    ["http://h:1", "https://h:1", "grpc://h:1", "h", "h:", ":1", "h:x", "h:0", "h:65536", "h:1/path", "h h:1", "u@h:1"],
)
def test_an_invalid_writer_address_is_refused_with_its_text(address: str, tmp_path: Path) -> None:
    route_file = tmp_path / "writers.json"
    route_file.write_text(f'{{"one": "{address}"}}')
    makers: tuple[Callable[[], object], ...] = (
        lambda: Producer(address),
        lambda: Producer(["127.0.0.1:1", address]),
        lambda: Producer(route_file=route_file),
        lambda: Topics(address),
    )
    for make in makers:
        with pytest.raises(ArgumentIllegalError, match="host:port") as raised:
            make()
        assert repr(address) in raised.value.message


@pytest.mark.parametrize("address", ["h:1", "tls://h:8081", "[::1]:8081", "tls://[::1]:1", "10.0.0.1:65535"])
def test_a_well_formed_address_is_accepted(address: str) -> None:
    assert require_writer_address(address) == address


@pytest.mark.parametrize("call", QUERY_CALLS.values(), ids=QUERY_CALLS.keys())
def test_a_writer_at_the_query_address_is_reported(writer: FakeWriter, call: Call) -> None:
    error, took_s = failure_of(call, f"http://{writer.address}")
    assert isinstance(error, QueryUnreachableError)
    assert f"http://{writer.address}" in error.message
    assert "gRPC" in error.message
    assert took_s < SOON_S


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "tls://127.0.0.1:8080", "http://", "localhost"])
def test_an_invalid_query_address_is_refused_with_its_text(url: str) -> None:
    with pytest.raises(ValueError, match="write http://host:port"):
        Query(url)


@pytest.mark.parametrize("name", ["http_proxy", "https_proxy", "grpc_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"])
def test_proxies_in_the_environment_are_ignored(writer: FakeWriter, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, f"http://127.0.0.1:{fixed_port()}")
    monkeypatch.setenv("no_proxy", "")
    with Producer(writer.address, timeout_s=5) as producer:
        assert producer.send("t", b"x").count == 1


def test_a_proxy_is_used_if_tidemark_grpc_proxy_is_set(writer: FakeWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{fixed_port()}")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("TIDEMARK_GRPC_PROXY", "true")
    with Producer(writer.address, timeout_s=1) as producer, pytest.raises(StoreError):
        producer.send("t", b"x")
