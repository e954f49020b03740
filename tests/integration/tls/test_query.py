"""The query service over TLS: real HTTP, real handshakes."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.certificates import Authority, Pair
from tests.integration.tls.shown import shows
from tests.integration.writer.harness import RunningWriter
from tests.query_server import serve_query, serve_query_over_tls
from tests.waiting import until
from tidemark.client import Consumer, Credentials, Query
from tidemark.errors import StoreError, TlsFailedError, UnavailableError

pytestmark = pytest.mark.integration

_MESSAGES = "/v1/topics/orders/messages"
_LARGE = 2 << 20


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return a topic with a message of two mebibytes, and small ones."""
    store = BuiltStore(tmp_path / "store", log_file_size=8 << 20)
    store.topic("orders", queues=1)
    for body in (b"first", b"x" * _LARGE, b"last"):
        store.append("orders", body, {}, queue_id=0)
    store.publish()
    return store


def tls_of(authority: Authority, pair: Pair | None = None) -> Credentials:
    return Credentials(authority.ca) if pair is None else Credentials(authority.ca, pair.cert, pair.key)


def failure(url: httpx.URL | str, tls: Credentials) -> StoreError:
    """Return the error of a call."""
    with Query(str(url), credentials=tls, timeout_s=5) as query, pytest.raises(StoreError) as raised:
        query.watermark()
    return raised.value


def metric(client: httpx.Client, name: str) -> float:
    (line,) = (line for line in client.get("/metrics").text.splitlines() if line.startswith(f"{name} "))
    return float(line.split()[1])


@pytest.mark.usefixtures("wire")
def test_messages_are_pulled_over_tls(store: BuiltStore, authority: Authority, server: Pair) -> None:
    """They come page by page, to consumers, and as large responses, which are read in another way."""
    tls = tls_of(authority)
    settings: dict[str, Any] = {**server.settings, "query_remoting_listen": "127.0.0.1:0"}
    with serve_query_over_tls(store.root, tls.context(), **settings) as client:
        url = str(client.base_url)
        with Query(url, credentials=tls) as query:
            page = query.pull_records("orders", 0, 0, max_bytes=2 * _LARGE)
            assert page.message_count == 3
            assert len(page.data) > _LARGE
            (unchecked,) = query.record_pages("orders", 0, 0, verify="none", max_bytes=2 * _LARGE)
            assert unchecked == page
        with Consumer("orders", url=url, credentials=tls, max_bytes=2 * _LARGE) as consumer:
            assert [len(message.body) for message in consumer.poll(30)] == [5, _LARGE, 4]
        assert metric(client, "tidemark_tls_reload_failed") == 0


def test_a_server_of_another_ca_is_not_trusted(
    store: BuiltStore, authority: Authority, stranger: Authority, server: Pair
) -> None:
    with serve_query_over_tls(store.root, tls_of(authority).context(), **server.settings) as client:
        error = failure(client.base_url, tls_of(stranger))
    assert isinstance(error, TlsFailedError)
    assert "its certificate is not trusted: unable to get local issuer certificate" in error.message


def test_the_wrong_scheme_is_reported(store: BuiltStore, authority: Authority, server: Pair) -> None:
    """The cases are http to a TLS port, and https to a plain one."""
    with serve_query_over_tls(store.root, tls_of(authority).context(), **server.settings) as client:
        error = failure(client.base_url.copy_with(scheme="http"), Credentials())
        assert isinstance(error, TlsFailedError)
        assert "it uses TLS, and this client does not: write https://" in error.message
    with serve_query(store.root) as client:
        error = failure(client.base_url.copy_with(scheme="https"), tls_of(authority))
        assert isinstance(error, TlsFailedError)
        assert "it does not use TLS" in error.message


def test_clients_need_a_certificate_of_the_client_ca(
    store: BuiltStore, authority: Authority, stranger: Authority, server: Pair, client: Pair
) -> None:
    """The cases are no certificate, one of another CA, and the right one."""
    allowed = tls_of(authority, client)
    with serve_query_over_tls(store.root, allowed.context(), **server.settings, tls_client_ca=authority.ca) as http:
        strange = stranger.issue("client", uses="clientAuth")
        for shown in (tls_of(authority), tls_of(authority, strange)):
            error = failure(http.base_url, shown)
            assert isinstance(error, TlsFailedError), error
            assert "it requires a client certificate" in error.message
        assert http.get("/v1/watermark").status_code == 200


def test_tls_1_2_is_accepted_without_client_certificates(
    store: BuiltStore, authority: Authority, server: Pair, client: Pair
) -> None:
    """With client certificates, a TLS 1.2 session would outlive a change of the CAs."""
    old = tls_of(authority, client).context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with serve_query_over_tls(store.root, old, **server.settings) as http:
        assert http.get("/healthz").status_code == 200
    with (
        serve_query_over_tls(store.root, old, **server.settings, tls_client_ca=authority.ca) as http,
        pytest.raises(httpx.ConnectError),
    ):
        http.get("/healthz")


def test_optional_certificates_are_checked_if_present(
    store: BuiltStore, authority: Authority, stranger: Authority, server: Pair
) -> None:
    settings: dict[str, Any] = {**server.settings, "tls_client_ca": authority.ca, "tls_client_auth": "optional"}
    with serve_query_over_tls(store.root, tls_of(authority).context(), **settings) as http:
        assert http.get("/v1/watermark").status_code == 200
        assert isinstance(failure(http.base_url, tls_of(authority, stranger.issue("guest"))), TlsFailedError)


def test_new_connections_get_the_new_certificate_and_old_ones_continue(
    store: BuiltStore, authority: Authority, stranger: Authority, files: Pair
) -> None:
    """The old connection's client trusts only the old CA: it could not connect again."""
    new = stranger.issue("server")
    with serve_query_over_tls(store.root, tls_of(authority).context(), **files.settings, tls_reload_ms=10) as http:
        assert http.get("/v1/watermark").status_code == 200
        ends = metric(http, "tidemark_tls_certificate_expires_seconds")
        assert ends > 0
        new.put(files)
        until(lambda: shows(http.base_url.port or 0, new))
        assert http.get("/v1/watermark").status_code == 200
        with Query(str(http.base_url), credentials=tls_of(stranger)) as query:
            assert query.watermark()["lag_bytes"] == 0
        assert isinstance(failure(http.base_url, tls_of(authority)), TlsFailedError)


def test_new_connections_are_checked_by_the_new_client_ca(
    store: BuiltStore, tmp_path: Path, authority: Authority, stranger: Authority, server: Pair, client: Pair
) -> None:
    """An earlier client is not accepted again."""
    client_ca = tmp_path / "clients.pem"
    client_ca.write_bytes(authority.ca.read_bytes())
    old, new = tls_of(authority, client), tls_of(authority, stranger.issue("let-in", uses="clientAuth"))
    settings: dict[str, Any] = {**server.settings, "tls_client_ca": client_ca, "tls_reload_ms": 10}

    def is_let_in(tls: Credentials) -> bool:
        with Query(url, credentials=tls, timeout_s=5) as query:
            try:
                query.watermark()
            except UnavailableError:  # the files may have changed before the cause of a refusal is examined
                return False
        return True

    with serve_query_over_tls(store.root, old.context(), **settings) as http:
        url = str(http.base_url)
        assert is_let_in(old)
        client_ca.write_bytes(stranger.ca.read_bytes())
        until(lambda: is_let_in(new))
        assert not is_let_in(old)


def test_invalid_tls_files_keep_the_old_certificate(
    store: BuiltStore, authority: Authority, server: Pair, files: Pair
) -> None:
    """A gauge reports it until they are whole again."""
    name = "tidemark_tls_reload_failed"
    with serve_query_over_tls(store.root, tls_of(authority).context(), **files.settings, tls_reload_ms=10) as http:
        files.key.write_text("broken")
        until(lambda: metric(http, name) == 1)
        assert shows(http.base_url.port or 0, server)
        server.put(files)
        until(lambda: metric(http, name) == 0)


def test_appends_are_forwarded_to_a_writer_with_tls(
    tmp_path: Path, authority: Authority, stranger: Authority, server: Pair
) -> None:
    """The service presents its own certificate there; an untrusted writer gets nothing."""
    body = {"messages": [{"body": "a"}], "queue_id": 0}
    tls = tls_of(authority)
    with RunningWriter(tmp_path, **server.settings, tls_client_ca=authority.ca) as writer:
        settings: dict[str, Any] = {**server.settings, "writer_address": writer.address}
        with serve_query_over_tls(writer.root, tls.context(), **settings, tls_ca=authority.ca) as http:
            assert http.post(_MESSAGES, json=body).status_code == 201
        with serve_query_over_tls(writer.root, tls.context(), **settings, tls_ca=stranger.ca) as http:
            refused = http.post(_MESSAGES, json=body)
            assert (refused.status_code, refused.json()["reason"]) == (503, "TLS_FAILED")
            assert "not trusted" in refused.json()["detail"]


def test_a_renewed_certificate_is_presented_to_the_writer(
    tmp_path: Path, authority: Authority, stranger: Authority, server: Pair, files: Pair
) -> None:
    """The append after a refused one uses it."""
    stranger.issue("stale").put(files)
    both = tmp_path / "both.pem"
    both.write_bytes(authority.ca.read_bytes() + stranger.ca.read_bytes())
    body = {"messages": [{"body": "a"}], "queue_id": 0}
    with RunningWriter(tmp_path / "store", **server.settings, tls_client_ca=authority.ca) as writer:
        settings: dict[str, Any] = {**files.settings, "writer_address": writer.address, "tls_ca": authority.ca}
        with serve_query_over_tls(writer.root, Credentials(both).context(), **settings) as http:
            assert http.post(_MESSAGES, json=body).json()["reason"] == "TLS_FAILED"
            server.put(files)
            assert http.post(_MESSAGES, json=body).status_code == 201


def test_the_health_check_uses_the_tls_files_of_the_service(
    store: BuiltStore, authority: Authority, server: Pair
) -> None:
    """This works with required client certificates too."""
    settings: dict[str, Any] = {**server.settings, "tls_client_ca": authority.ca}
    with serve_query_over_tls(store.root, tls_of(authority, server).context(), **settings) as http:
        given = {
            "TIDEMARK_QUERY_LISTEN": f"127.0.0.1:{http.base_url.port}",
            **{f"TIDEMARK_{name.upper()}": str(path) for name, path in settings.items()},
        }
        assert _check_health(given) == 0
        assert _check_health({"TIDEMARK_QUERY_LISTEN": given["TIDEMARK_QUERY_LISTEN"]}) == 1


def _check_health(given: dict[str, str]) -> int:
    command = [sys.executable, "-m", "services.indexer.query.healthcheck"]
    return subprocess.run(command, env={**os.environ, **given}, timeout=60, check=False).returncode


def test_a_query_service_that_cannot_start_reports_one_line(store: BuiltStore) -> None:
    """The reason is plaintext on a public address."""
    done = subprocess.run(
        [sys.executable, "-m", "services.indexer", "query", "--query-listen", "0.0.0.0:0"],
        env={**os.environ, "TIDEMARK_STORE_ROOT": str(store.root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    event = json.loads(done.stderr)
    assert (event["event"], event["error"]) == ("query_failed", "PlaintextRefusedError")
    assert "TIDEMARK_ALLOW_PLAINTEXT" in event["message"]
