"""Slow, silent, greedy and broken clients: each is limited or closed, and the others are served."""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
from structlog.testing import capture_logs

from tests.integration.writer.harness import RunningWriter, log_bytes, stored_records
from tests.remoting_client import RemotingClient
from tests.unit.remoting.frames import binary_header_bytes, frame_bytes
from tidemark.remoting import Frame, encode
from tidemark.remoting.codes import VERSION, Language
from tidemark.remoting.framing import MAX_FRAME_SIZE_BYTES
from tidemark.remoting.sending import to_fields
from tidemark.store.open_files_limit import allow_many_files

from .conftest import LISTEN
from .test_doors import closed_by_server
from .test_sends import asked, of_topic, send, sent

pytestmark = pytest.mark.integration

MEBIBYTE = 1 << 20
MANY_CONNECTIONS = 10_000


@contextlib.contextmanager
def running(root: Path, **settings: Any) -> Iterator[tuple[RunningWriter, RemotingClient]]:
    """Run a writer, and a client that must be served in spite of the others."""
    with (
        RunningWriter(root, writer_remoting_listen=LISTEN, **settings) as writer,
        RemotingClient(writer.remoting_port) as client,
    ):
        yield writer, client


def connect(writer: RunningWriter, data: bytes = b"", receive_buffer: int | None = None) -> socket.socket:
    connection = socket.socket()
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(30)
    try:
        connection.connect(("127.0.0.1", writer.remoting_port))
        connection.sendall(data)
    except ConnectionError:  # refused at once, which even an empty send reports
        connection.close()
        raise
    return connection


def refused(events: list[Any]) -> list[tuple[str, str]]:
    """Return address and reason of the events of refused connections."""
    return [(event["address"], event["reason"]) for event in events if event["event"] == "remoting_connection_refused"]


def message(number: int = 1, size: int = 10) -> bytes:
    """Return a frame with a message."""
    return encode(Frame(310, 0, number, Language.JAVA, VERSION, "", to_fields(310, asked()), b"x" * size))


DEEP = b'{"code":310,"opaque":1,"extFields":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
BAD = {
    "LENGTH_EXCEEDED": struct.pack(">iI", MAX_FRAME_SIZE_BYTES + 1, 2) + b"{}",
    "LENGTH_TOO_SMALL": struct.pack(">iI", -5, 0),
    "HEADER_EXCEEDS_FRAME": struct.pack(">iI", 8, 5) + b"{}{}",
    "SERIALIZATION_UNKNOWN": struct.pack(">iI", 6, 7 << 24 | 2) + b"{}",
    "NOT_JSON": frame_bytes(b"[" * 1_000),
    "NOT_UTF8": frame_bytes(binary_header_bytes(310, 0, 1, 1, 0, b"\xff"), serialization=1),
    "BINARY_HEADER_ILLEGAL": frame_bytes(binary_header_bytes(310, 0, 1, 1, 0, b"")[:-2], serialization=1),
    "NOT_AN_OBJECT": frame_bytes(b"5"),
    "MEMBER_ILLEGAL": frame_bytes(b'{"code":310}'),
}


@pytest.mark.parametrize("reason", BAD)
def test_a_bad_frame_closes_its_connection_alone_and_writes_nothing(tmp_path: Path, reason: str) -> None:
    """Without an answer; one event a minute for each address, however often it comes."""
    with capture_logs() as events, running(tmp_path) as (writer, client):
        sent(client, asked())
        before = log_bytes(tmp_path)
        for _ in range(5):
            assert closed_by_server(connect(writer, BAD[reason])) == b""
        assert log_bytes(tmp_path) == before
        assert sent(client, asked()).queue_offset == 1
        line = f'tidemark_remoting_refused_connections_total{{reason="{reason}"}} 5.0'
        assert line in writer.metrics()
    assert refused(events) == [("127.0.0.1", reason)]
    assert not [event for event in events if event["event"] == "request_failed"]


@pytest.mark.parametrize("header", [DEEP, DEEP.replace(b'"a":[', b'"n":1,"a":[', 1)], ids=["arrays", "with a number"])
def test_deep_json_closes_the_connection(tmp_path: Path, header: bytes) -> None:
    with capture_logs() as events, running(tmp_path) as (writer, client):
        assert closed_by_server(connect(writer, frame_bytes(header))) == b""
        sent(client, asked())
    assert [address for address, _ in refused(events)] == ["127.0.0.1"]
    assert not [event for event in events if event["event"] == "request_failed"]


@pytest.mark.parametrize("code", [34, 46, 41])
def test_a_deep_body_is_refused(writer: RunningWriter, client: RemotingClient, code: int) -> None:
    body = b'{"clientID":"a","clientId":"a","consumerDataSet":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    assert client.call(code, body=body).code in (1, 16)
    sent(client, asked())


def test_a_message_arrives_byte_by_byte(writer: RunningWriter, client: RemotingClient) -> None:
    """Others are served meanwhile."""
    with RemotingClient(writer.remoting_port) as slow:
        slow.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = message()
        for at in range(len(data)):
            slow.socket.sendall(data[at : at + 1])
            if at % 20 == 0:
                sent(client, asked("other"))
        assert slow.receive().code == 0
    assert [record.body for record in of_topic(writer.root)] == [b"x" * 10]


def test_connections_above_the_limit_are_closed_and_the_others_served(tmp_path: Path) -> None:
    with capture_logs() as events, running(tmp_path, remoting_max_connections=3) as (writer, client):
        held = [connect(writer, message()) for _ in range(2)]
        for connection in held:
            assert connection.recv(4)
        for _ in range(5):
            with contextlib.suppress(ConnectionError):
                assert closed_by_server(connect(writer)) == b""
        sent(client, asked())
        held.pop().close()
        deadline = time.monotonic() + 20
        while True:  # its place is free again
            with contextlib.suppress(ConnectionError), RemotingClient(writer.remoting_port) as another:
                sent(another, asked())
                break
            assert time.monotonic() < deadline
        held.pop().close()
    assert refused(events) == [("127.0.0.1", "TOO_MANY_CONNECTIONS")]


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "IDLE"), (message(), "IDLE"), (b"\0", "FRAME_INCOMPLETE"), (message()[:-1], "FRAME_INCOMPLETE")],
    ids=["new", "used", "one byte", "without the last byte"],
)
def test_silent_connections_are_closed(tmp_path: Path, data: bytes, reason: str) -> None:
    settings = {"remoting_idle_timeout_ms": 1_500, "remoting_frame_timeout_ms": 500}
    with capture_logs() as events, running(tmp_path, **settings) as (writer, client):
        silent = connect(writer, data)
        for _ in range(40):
            sent(client, asked("other"))
            time.sleep(0.1)
        closed_by_server(silent)
    assert refused(events) == [("127.0.0.1", reason)]


def test_a_frame_that_drips_is_cut(tmp_path: Path) -> None:
    """Further bytes do not extend its time."""
    with capture_logs() as events, running(tmp_path, remoting_frame_timeout_ms=1_000) as (writer, _):
        with connect(writer) as slow, contextlib.suppress(ConnectionError):
            deadline = time.monotonic() + 20
            for byte in message(size=1_000):
                assert time.monotonic() < deadline
                slow.sendall(bytes([byte]))
                time.sleep(0.05)
        assert stored_records(tmp_path) == []
    assert refused(events) == [("127.0.0.1", "FRAME_INCOMPLETE")]


def test_a_client_that_reads_no_answers_is_cut_and_takes_bounded_memory(tmp_path: Path) -> None:
    """Routes of 16 KiB each, hundreds of megabytes of them: the client is not read when few are unsent."""
    settings = {"remoting_max_unsent_bytes": MEBIBYTE, "remoting_write_timeout_ms": 2_000, "auto_create_topics": True}
    with capture_logs() as events, running(tmp_path, cluster_name="c" * 255, **settings) as (writer, client):
        sent(client, asked("t"))
        before = psutil.Process().memory_info().rss
        ask = encode(Frame(105, 0, 1, Language.JAVA, VERSION, "", {"topic": "t"})) * 100
        with connect(writer, receive_buffer=4_096) as greedy:
            greedy.settimeout(0.5)
            asked_bytes = 0
            with contextlib.suppress(TimeoutError, ConnectionError):
                while asked_bytes < 200 * MEBIBYTE:
                    asked_bytes += greedy.send(ask)
            assert asked_bytes < 50 * MEBIBYTE, "it was read without an end"
            assert psutil.Process().memory_info().rss - before < 100 * MEBIBYTE
            deadline = time.monotonic() + 30
            while not refused(events):
                assert sent(client, asked("t")).queue_offset > 0
                assert time.monotonic() < deadline
                time.sleep(0.05)
    assert refused(events) == [("127.0.0.1", "ANSWERS_NOT_TAKEN")]


def test_requests_above_the_limit_of_those_in_work_wait_and_are_answered(tmp_path: Path) -> None:
    """More than the limit in one piece; the order within the queue is that of the requests."""
    with running(tmp_path, remoting_max_in_flight=4) as (_, client):
        client.socket.sendall(b"".join(message(number, 10) for number in range(3_000)))
        answers = [client.receive() for _ in range(3_000)]
    assert {answer.code for answer in answers} == {0}
    assert sorted(answer.opaque for answer in answers) == list(range(3_000))
    assert len(of_topic(tmp_path)) == 3_000


def test_thousands_of_idle_connections_do_not_disturb_sends(tmp_path: Path) -> None:
    """As many as the open-file limit allows for both ends in one process."""
    allow_many_files()
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(MANY_CONNECTIONS, (files - 2_000) // 2)
    assert count >= 2_000
    with running(tmp_path) as (writer, client), contextlib.ExitStack() as idle:
        sent(client, asked())
        before = psutil.Process().memory_info().rss
        for _ in range(count):
            idle.enter_context(connect(writer))
        deadline = time.monotonic() + 60
        while f"tidemark_remoting_connections {count + 1}.0" not in writer.metrics():
            assert time.monotonic() < deadline
        slowest = 0.0
        for _ in range(50):
            began = time.monotonic()
            sent(client, asked())
            with RemotingClient(writer.remoting_port) as another:
                sent(another, asked())
            slowest = max(slowest, time.monotonic() - began)
        assert psutil.Process().memory_info().rss - before < 300 * MEBIBYTE
    assert slowest < 5


def test_long_names_of_hostile_clients_are_answered_shortly(writer: RunningWriter, client: RemotingClient) -> None:
    """A control character of a binary header takes six bytes in the JSON of an answer."""
    long = "\x01" * 4_000_000
    for code, fields in (
        (105, {"topic": long}),
        (38, {"consumerGroup": long}),
        (310, {**to_fields(310, asked()), "b": long}),
        (310, {**to_fields(310, asked()), "e": long}),
        (310, {**to_fields(310, asked()), "i": long}),
        (14, {"consumerGroup": long}),
        (9_999, {"SecurityToken": long}),
    ):
        pairs = [(name.encode(), value.encode()) for name, value in fields.items()]
        header = binary_header_bytes(code, 0, VERSION, 5, 0, b"", *pairs)
        client.socket.sendall(frame_bytes(header, b"x", serialization=1))
        answer = client.receive()
        assert answer.code != 0
        assert len(answer.remark) <= 1_000
        assert len(orjson.dumps(answer.fields)) < 10_000
    assert send(client, 310, asked(), b"x").code == 0
