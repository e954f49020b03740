"""TLS, access rules, audit entries, rates and metrics of the remoting port."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import time
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from services.writer.remoting.composition import WriterRemoting
from tests.access_files import AccessFolder
from tests.certificates import Authority
from tests.fixed_ports import fixed_port
from tests.integration.writer.harness import RunningWriter, stored_records
from tests.remoting_client import RemotingClient

from .conftest import LISTEN
from .test_routes_and_groups import heartbeat
from .test_sends import TWO, asked, send, sent

pytestmark = pytest.mark.integration

NO_PERMISSION = 16


def closed_by_server(connection: socket.socket) -> bytes:
    """Return the bytes until the server closes."""
    said = b""
    connection.settimeout(30)
    with connection, contextlib.suppress(ConnectionError):
        while piece := connection.recv(4_096):
            said += piece
    return said


def test_messages_are_sent_over_tls_and_plaintext_is_closed(tmp_path: Path, authority: Authority) -> None:
    """With one event a minute for each address."""
    pair = authority.issue("remoting-writer")
    given: dict[str, Any] = {**pair.settings, "writer_remoting_listen": LISTEN}
    with capture_logs() as events, RunningWriter(tmp_path, **given) as writer:
        context = ssl.create_default_context(cafile=str(authority.ca))
        with RemotingClient(writer.remoting_port, context=context) as client:
            sent(client, asked(), b"secret")
            large = [sent(client, asked(), bytes(500_000)).queue_offset for _ in range(3)]
            assert large == [1, 2, 3]
        for _ in range(3):
            with RemotingClient(writer.remoting_port) as plain:
                plain.send(105, {"topic": "t"})
                assert closed_by_server(plain.socket)[:1] in (b"", b"\x15")  # at most an alert of TLS
    refused = [event for event in events if event["event"] == "remoting_connection_refused"]
    assert [(event["address"], event["reason"]) for event in refused] == [("127.0.0.1", "TLS_HANDSHAKE_FAILED")]
    assert len(stored_records(tmp_path)) == 4


def test_a_tls_hello_to_a_plaintext_port_is_closed(tmp_path: Path) -> None:
    with capture_logs() as events, RunningWriter(tmp_path, writer_remoting_listen=LISTEN) as writer:
        for _ in range(3):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                RemotingClient(writer.remoting_port, context=ssl.create_default_context())
    refused = [event for event in events if event["event"] == "remoting_connection_refused"]
    assert [(event["address"], event["reason"]) for event in refused] == [("127.0.0.1", "LENGTH_EXCEEDED")]


@pytest.fixture
def files(tmp_path: Path) -> AccessFolder:
    folder = tmp_path / "access"
    folder.mkdir()
    return AccessFolder(folder)


@pytest.fixture
def guarded(tmp_path: Path, files: AccessFolder) -> dict[str, Any]:
    """Return the settings of a writer with access rules and an audit log."""
    return {
        "access_file": files.path,
        "access_reload_ms": 10,
        "audit_file": tmp_path / "audit.log",
        "audit_repeat_ms": 100,
        "writer_remoting_listen": LISTEN,
    }


CODES = (10, 310, 320, 34, 35, 38, 105, 11, 361, 12, 14, 15, 33, 36, 37, 41, 46, 324, 370, 400, 9_999, -1)


def test_without_a_token_nothing_is_answered_but_no_permission(
    tmp_path: Path, files: AccessFolder, guarded: dict[str, Any]
) -> None:
    """Unknown codes and routes, too; and nothing is stored, whoever the client says it is."""
    token = files.principal("orders")
    files.rule("orders", ["Pub"], "Topic:t")
    with RunningWriter(tmp_path / "store", **guarded) as writer, RemotingClient(writer.remoting_port) as client:
        for shown in ({}, {"SecurityToken": "x"}, {"AccessKey": "orders", "Signature": token}):
            for code in CODES:
                answer = client.call(code, {**shown, "topic": "t", "consumerGroup": "g"}, TWO)
                assert (answer.code, answer.fields["tidemarkReason"]) == (NO_PERMISSION, "UNAUTHENTICATED")
                assert bytes(answer.body) == b""
                client.send(code, shown, TWO, one_way=True)
        assert stored_records(tmp_path / "store") == []


def test_a_token_has_the_rights_of_its_principal(tmp_path: Path, files: AccessFolder, guarded: dict[str, Any]) -> None:
    """Pub for each topic, Sub for each group; routes only of topics that it may know. Refusals are in the audit log."""
    tokens = {name: files.principal(name) for name in ("sender", "reader", "nothing")}
    files.rule("sender", ["Pub"], "Topic:t")
    files.rule("reader", ["Sub"], "Topic:t")
    files.rule("reader", ["Sub"], "Group:g")
    with RunningWriter(tmp_path / "store", **guarded) as writer, contextlib.ExitStack() as clients:
        sender, reader, nothing = (
            clients.enter_context(RemotingClient(writer.remoting_port, fields={"SecurityToken": tokens[name]}))
            for name in ("sender", "reader", "nothing")
        )
        sent(sender, asked("t"))
        assert send(sender, 310, asked("other"), b"x").code == NO_PERMISSION
        assert send(sender, 320, asked("other", batch=True), TWO).code == NO_PERMISSION
        assert send(sender, 310, asked("%RETRY%g"), b"x").code == NO_PERMISSION
        assert send(reader, 310, asked("t"), b"x").code == NO_PERMISSION
        assert send(reader, 310, asked("%RETRY%g"), b"x").code == 0
        for client, expected in ((sender, 0), (reader, 0), (nothing, NO_PERMISSION)):
            assert client.call(105, {"topic": "t"}).code == expected
        assert sender.call(105, {"topic": "unknown"}).code == 17
        assert nothing.call(105, {"topic": "%RETRY%g"}).code == NO_PERMISSION
        assert nothing.call(105, {"topic": "TBW102"}).code == 0
        with pytest.raises(AssertionError):
            heartbeat(sender, "a")
        for code in (35, 38):
            fields = {"clientID": "a", "consumerGroup": "g"}
            assert sender.call(code, fields).code == NO_PERMISSION
        assert nothing.call(11, {"topic": "t"}).code == NO_PERMISSION
        assert nothing.call(9_999).code == 3
    assert [record.topic for record in stored_records(tmp_path / "store")] == [b"t", b"%RETRY%g"]
    audit = (tmp_path / "audit.log").read_text()
    deeds = {(deed["principal"], deed["action"], deed["outcome"]) for deed in map(json.loads, audit.splitlines())}
    assert deeds >= {
        ("sender", "SEND_MESSAGE_V2", "ALLOWED"),
        ("sender", "SEND_MESSAGE_V2", "FORBIDDEN"),
        ("sender", "SEND_BATCH_MESSAGE", "FORBIDDEN"),
        ("sender", "HEART_BEAT", "FORBIDDEN"),
        ("nothing", "GET_ROUTEINFO_BY_TOPIC", "FORBIDDEN"),
    }
    assert not any(token in audit for token in tokens.values())


def test_a_withdrawn_token_is_refused_on_a_connection_that_has_used_it(
    tmp_path: Path, files: AccessFolder, guarded: dict[str, Any]
) -> None:
    token = files.principal("orders")
    files.rule("orders", ["Pub"], "Topic:t")
    with (
        RunningWriter(tmp_path / "store", **guarded) as writer,
        RemotingClient(writer.remoting_port, fields={"SecurityToken": token}) as client,
    ):
        sent(client, asked())
        files.forget("orders")
        deadline = time.monotonic() + 20
        while send(client, 310, asked(), b"x").code == 0:
            assert time.monotonic() < deadline
        assert send(client, 310, asked(), b"x").code == NO_PERMISSION


def test_a_sender_above_its_rate_is_answered_flow_control(
    tmp_path: Path, files: AccessFolder, guarded: dict[str, Any]
) -> None:
    """Requests, and bytes of messages."""
    fast = files.principal("fast", max_requests_per_s=3)
    large = files.principal("large", max_append_bytes_per_s=100_000)
    for name in ("fast", "large"):
        files.rule(name, ["Pub"], "Topic:t")
    given = {**guarded, "max_message_size_bytes": 50_000}
    with RunningWriter(tmp_path / "store", **given) as writer:
        stored = 0
        for token, body in ((fast, b"x"), (large, bytes(40_000))):
            with RemotingClient(writer.remoting_port, fields={"SecurityToken": token}) as client:
                codes = [send(client, 310, asked(), body).code for _ in range(8)]
            assert set(codes) == {0, 215}
            assert codes[0] == 0
            stored += codes.count(0)
        assert len(stored_records(tmp_path / "store")) == stored


def test_metrics_count_connections_requests_and_refusals(writer: RunningWriter, client: RemotingClient) -> None:
    sent(client, asked())
    send(client, 310, asked(queue_id=9), b"x")
    send(client, 320, asked(batch=True), TWO)
    client.call(9_999)
    client.send(310, {}, one_way=True)
    client.call(105, {"topic": "t"})
    with RemotingClient(writer.remoting_port) as bad:
        bad.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert closed_by_server(bad.socket) == b""
    lines = writer.metrics()
    for line in (
        "tidemark_remoting_connections 1.0",
        'tidemark_remoting_requests_total{request="SEND_MESSAGE_V2",response="SUCCESS"} 1.0',
        'tidemark_remoting_requests_total{request="SEND_MESSAGE_V2",response="INVALID_PARAMETER"} 1.0',
        'tidemark_remoting_requests_total{request="SEND_MESSAGE_V2",response="SYSTEM_ERROR"} 1.0',
        'tidemark_remoting_requests_total{request="SEND_BATCH_MESSAGE",response="SUCCESS"} 1.0',
        'tidemark_remoting_requests_total{request="OTHER",response="REQUEST_CODE_NOT_SUPPORTED"} 1.0',
        'tidemark_remoting_requests_total{request="GET_ROUTEINFO_BY_TOPIC",response="SUCCESS"} 1.0',
        'tidemark_remoting_refused_connections_total{reason="LENGTH_EXCEEDED"} 1.0',
    ):
        assert line in lines
    refused = [line for line in lines if line.startswith("tidemark_refused")]
    assert any("QUEUE_ID_ILLEGAL" in line for line in refused), "refused sends count as refused appends"


def test_a_writer_without_the_setting_has_no_remoting_metrics(tmp_path: Path) -> None:
    with RunningWriter(tmp_path) as running:
        assert running.remoting_port == 0
        assert not any("remoting" in line for line in running.metrics())


def test_a_writer_is_healthy_only_when_its_remoting_port_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that wait for its health connect at once."""
    start = WriterRemoting.start
    codes: list[grpc.StatusCode] = []

    async def start_slowly(remoting: WriterRemoting) -> None:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=0.3)
            codes.append(refused.value.code())
        await start(remoting)

    monkeypatch.setattr(WriterRemoting, "start", start_slowly)
    port = fixed_port()
    given = {"writer_listen": f"127.0.0.1:{port}", "writer_remoting_listen": LISTEN}
    with RunningWriter(tmp_path, None, **given) as writer, RemotingClient(writer.remoting_port) as client:
        sent(client, asked())
    assert codes == [grpc.StatusCode.DEADLINE_EXCEEDED]
