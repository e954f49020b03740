"""Arbitrary bytes to the ports of a real writer and a real query service: both keep running."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import strategies as st

from tests.fuzz.mutation import mutated
from tests.fuzz.target import fuzz
from tests.integration.writer.harness import RunningWriter
from tests.query_server import serve_query

pytestmark = pytest.mark.integration

HTTP = st.sampled_from(
    [
        b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/topics/t/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 27\r\n\r\n"
        + b'{"messages":[{"body":"x"}]}',
        b"POST /v1/topics/t/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
        b"PUT /v1/groups/g/topics/t/queues/0/offset HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
        2 * b"GET /v1/topics HTTP/1.1\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\n\r\n",
        b"GET http://x:99999/%zz?%zz#f HTTP/1.1\r\n\r\n",
        b"GET /v1/status HTTP/9.9\r\nContent-Length: -1\r\nContent-Length: 5\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # the first bytes of a TLS hello
    ]
)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes(3) + b"\x04" + bytes(5)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return a frame of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + (stream & 0x7FFFFFFF).to_bytes(4, "big") + payload


HEADERS = b"\x83\x86\x44\x01/\x41\x01x\x5f\x10application/grpc"  # POST http / x, content-type application/grpc
FRAMES = st.lists(
    st.builds(
        frame,
        st.integers(0, 12),
        st.sampled_from([0, 1, 4, 5, 8, 0x20, 0xFF]),
        st.sampled_from([0, 1, 2, 3, 0x7FFFFFFF]),
        st.sampled_from([b"", bytes(4), bytes(8), HEADERS, b"\xff" * 40]) | st.binary(max_size=40),
    ),
    max_size=6,
).map(lambda frames: PREFACE + SETTINGS + b"".join(frames))


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningWriter, httpx.Client]]:
    root = tmp_path_factory.mktemp("raw") / "store"
    with RunningWriter(root) as writer, serve_query(root, writer_address=writer.address) as client:
        yield writer, client
        assert client.get("/v1/topics").status_code == 200
        assert writer.info().term == 1
    assert writer.failure is None


def send(address: tuple[str, int], data: bytes, *, reads: bool) -> bytes:
    """Return the bytes that come back shortly; the connection is reset or closed."""
    with socket.create_connection(address, timeout=10) as connection, contextlib.suppress(OSError):
        connection.sendall(data)
        connection.settimeout(0.02)
        return connection.recv(65_536) if reads else b""
    return b""


@fuzz(few=40, at_once=100, data=mutated(HTTP) | HTTP | st.binary(max_size=200), reads=st.booleans())
def test_the_http_port_survives_random_bytes(
    services: tuple[RunningWriter, httpx.Client], data: bytes, reads: bool
) -> None:
    """A valid request is answered, an invalid one gets 400; the service never fails."""
    _, client = services
    answer = send((client.base_url.host, client.base_url.port or 0), data, reads=reads)
    assert not answer.startswith(b"HTTP/1.1 500"), answer
    assert client.get("/v1/topics").status_code == 200


@fuzz(few=40, at_once=100, data=mutated(FRAMES) | FRAMES | HTTP | st.binary(max_size=200), reads=st.booleans())
def test_the_grpc_port_survives_random_bytes(
    services: tuple[RunningWriter, httpx.Client], data: bytes, reads: bool
) -> None:
    """Frames of HTTP/2 come in any order."""
    writer, _ = services
    host, _, port = writer.address.rpartition(":")
    send((host, int(port)), data, reads=reads)
    assert writer.info().term == 1
