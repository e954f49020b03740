"""The writer over TLS: real gRPC, real handshakes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority, Pair
from tests.health_checks import is_healthy
from tests.integration.tls.shown import shows
from tests.integration.writer.harness import SEGMENT_SIZE, RunningWriter, stored_records
from tests.waiting import until
from tidemark.client import Credentials, Producer, Topics
from tidemark.errors import StoreError, TlsFailedError
from tidemark.local.local_stack import WRITER, LocalStack

pytestmark = pytest.mark.integration

_RELOAD_MS = 10


@contextlib.contextmanager
def serving(root: Path, **settings: Any) -> Iterator[RunningWriter]:
    with RunningWriter(root, tls_reload_ms=_RELOAD_MS, writer_remoting_listen="127.0.0.1:0", **settings) as writer:
        yield writer


def port_of(writer: RunningWriter) -> int:
    return int(writer.address.rpartition(":")[2])


def failure(address: str, tls: Credentials) -> StoreError:
    """Return the error of a call."""
    with Topics(address, credentials=tls, timeout_s=0.5) as topics, pytest.raises(StoreError) as raised:
        topics.list_all()
    return raised.value


_OTHER_ROLES = {
    "replica": {
        "TIDEMARK_REPLICATION": "async",
        "TIDEMARK_MEMBER": "a",
        "TIDEMARK_GROUP_MEMBERS": "a=127.0.0.1:1,b=127.0.0.1:2",
    },
    "follower": {"TIDEMARK_FOLLOW": "rocketmq://127.0.0.1:1/broker"},
}


@pytest.mark.usefixtures("wire")
def test_messages_are_sent_over_tls(tmp_path: Path, authority: Authority, server: Pair) -> None:
    """The address may have the scheme tls://."""
    with serving(tmp_path, **server.settings) as writer:
        for address in (writer.address, f"tls://{writer.address}"):
            with Producer(address, credentials=Credentials(authority.ca)) as producer:
                producer.send("orders", b"secret", queue_id=0)
    assert [record.body for record in stored_records(tmp_path)] == [b"secret", b"secret"]


@pytest.mark.usefixtures("wire")
def test_a_server_of_another_ca_is_not_trusted(tmp_path: Path, stranger: Authority, server: Pair) -> None:
    """Nothing is sent to it."""
    with serving(tmp_path, **server.settings) as writer:
        error = failure(writer.address, Credentials(stranger.ca))
        assert isinstance(error, TlsFailedError)
        assert "its certificate is not trusted: unable to get local issuer certificate" in error.message
        with (
            Producer(writer.address, credentials=Credentials(stranger.ca), timeout_s=0.5) as producer,
            pytest.raises(TlsFailedError, match="not trusted"),
        ):
            producer.send("orders", b"secret")
    assert stored_records(tmp_path) == []


def test_plaintext_to_a_tls_port_is_reported(tmp_path: Path, server: Pair) -> None:
    with serving(tmp_path, **server.settings) as writer:
        error = failure(writer.address, Credentials())
    assert isinstance(error, TlsFailedError)
    assert "it uses TLS, and this client does not" in error.message
    assert "tls://host:port" in error.message


def test_tls_to_a_plaintext_port_is_reported(tmp_path: Path, authority: Authority) -> None:
    with serving(tmp_path) as writer:
        error = failure(writer.address, Credentials(authority.ca))
    assert isinstance(error, TlsFailedError)
    assert "it does not use TLS" in error.message


def test_clients_need_a_certificate_of_the_client_ca(
    tmp_path: Path, authority: Authority, stranger: Authority, server: Pair, client: Pair
) -> None:
    """The cases are no certificate, one of another CA, and the right one."""
    strange = stranger.issue("client", uses="clientAuth")
    with serving(tmp_path, **server.settings, tls_client_ca=authority.ca) as writer:
        for shown in (Credentials(authority.ca), Credentials(authority.ca, strange.cert, strange.key)):
            error = failure(writer.address, shown)
            assert isinstance(error, TlsFailedError), error
            assert "it requires a client certificate" in error.message
        with Topics(writer.address, credentials=Credentials(authority.ca, client.cert, client.key)) as topics:
            assert topics.list_all() == []


@pytest.mark.usefixtures("wire")
def test_new_connections_get_the_new_certificate_and_old_ones_continue(
    tmp_path: Path, authority: Authority, stranger: Authority, files: Pair
) -> None:
    """The old connection's client trusts only the old CA: it could not connect again."""
    new = stranger.issue("server")
    with (
        serving(tmp_path / "store", **files.settings) as writer,
        Producer(writer.address, credentials=Credentials(authority.ca)) as producer,
    ):
        assert producer.send("orders", b"before").queue_offset == 0
        new.put(files)
        until(lambda: shows(port_of(writer), new))
        producer.send("orders", b"after")
        with Topics(writer.address, credentials=Credentials(stranger.ca)) as topics:
            assert [topic.name for topic in topics.list_all()] == ["orders"]
        assert isinstance(failure(writer.address, Credentials(authority.ca)), TlsFailedError)


@pytest.mark.parametrize("role", _OTHER_ROLES)
def test_a_process_that_does_not_append_reads_its_new_files_too(
    tmp_path: Path, stranger: Authority, files: Pair, role: str
) -> None:
    """Neither another member nor the broker answers. The store's log gives a follower its file size."""
    with RunningWriter(tmp_path / "store") as writer, Producer(writer.address) as producer:
        producer.send("orders", b"m")
    environment = {
        "TIDEMARK_TLS_CERT": str(files.cert),
        "TIDEMARK_TLS_KEY": str(files.key),
        "TIDEMARK_TLS_RELOAD_MS": str(_RELOAD_MS),
        "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(SEGMENT_SIZE),
        **_OTHER_ROLES[role],
    }
    new = stranger.issue("server")
    stack = LocalStack(tmp_path / "store", environment=environment, services=(WRITER,), small_new_files=False)
    with stack as running:
        new.put(files)
        until(lambda: shows(running.writer_port, new))


def test_new_connections_are_checked_by_the_new_client_ca(
    tmp_path: Path, authority: Authority, stranger: Authority, server: Pair, client: Pair
) -> None:
    """An earlier client is not accepted again."""
    client_ca = tmp_path / "clients.pem"
    client_ca.write_bytes(authority.ca.read_bytes())
    strange = stranger.issue("let-in", uses="clientAuth")
    old, new = Credentials(authority.ca, client.cert, client.key), Credentials(authority.ca, strange.cert, strange.key)

    def is_let_in(tls: Credentials) -> bool:
        with contextlib.suppress(StoreError), Topics(writer.address, credentials=tls, timeout_s=0.5) as topics:
            return topics.list_all() == []
        return False

    with serving(tmp_path / "store", **server.settings, tls_client_ca=client_ca) as writer:
        assert is_let_in(old)
        client_ca.write_bytes(stranger.ca.read_bytes())
        until(lambda: is_let_in(new))
        assert not is_let_in(old)


def test_invalid_tls_files_keep_the_old_certificate(
    tmp_path: Path, authority: Authority, server: Pair, files: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    """An event names the file."""
    with serving(tmp_path / "store", **files.settings) as writer:
        files.cert.write_text("broken")
        told = ""

        def is_told() -> bool:
            nonlocal told
            told += "".join(capsys.readouterr())
            return "tls_reload_failed" in told

        until(is_told)
        assert str(files.cert) in told
        assert shows(port_of(writer), server)
        with Topics(writer.address, credentials=Credentials(authority.ca)) as topics:
            assert topics.list_all() == []


def test_the_health_check_uses_the_tls_files_of_the_service(tmp_path: Path, authority: Authority, server: Pair) -> None:
    """This works with required client certificates too."""
    with serving(tmp_path, **server.settings, tls_client_ca=authority.ca) as writer:
        files = {"tls_cert": server.cert, "tls_key": server.key, "tls_client_ca": authority.ca}
        assert is_healthy("writer", writer_listen=writer.address, **files)
        assert not is_healthy("writer", writer_listen=writer.address)


@pytest.mark.parametrize("fault", ["plaintext", "expired"])
def test_a_writer_that_cannot_start_reports_one_line(tmp_path: Path, authority: Authority, fault: str) -> None:
    """It ends before it opens the store."""
    given, said = (
        {"TIDEMARK_WRITER_LISTEN": "0.0.0.0:0"},
        "PLAINTEXT_REFUSED: 0.0.0.0:0 is reachable from other machines",
    )
    if fault == "expired":
        pair = authority.issue("expired", expired=True)
        given = {"TIDEMARK_TLS_CERT": str(pair.cert), "TIDEMARK_TLS_KEY": str(pair.key)}
        said = f"TLS_FILES_ILLEGAL: {pair.cert}: certificate has expired"
    root = tmp_path / "store"
    done = subprocess.run(
        [sys.executable, "-m", "services.writer"],
        env={**os.environ, "TIDEMARK_STORE_ROOT": str(root), **given},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"writer: {said}")
    assert done.stderr.count("\n") == 1
    assert not root.exists()
