from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import grpc
import pytest

from services.writer.rpc.tls_credentials import server_credentials
from tests.certificates import Authority, Pair
from tests.unit.writer.rpc.served import LONG_S, Log, serving
from tidemark.tls.reloading import Reloading
from tidemark.tls.server_files import ClientAuth, ServerFiles
from tidemark.v1.commit_log_pb2 import GetLogInfoRequest
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub


@pytest.fixture(scope="module")
def server(authority: Authority) -> Pair:
    return authority.issue("writer")


def files_of(folder: Path, pair: Pair, client_ca: Path | None = None) -> tuple[Pair, Reloading]:
    """Copy *pair* to *folder*, and return the copies and what loads them."""
    files = Pair(folder / "cert.pem", folder / "key.pem")
    pair.put(files)
    auth = ClientAuth.NONE if client_ca is None else ClientAuth.REQUIRED
    return files, Reloading(
        ServerFiles(files.cert, files.key, client_ca, auth), every_ms=10_000, on_reload=lambda fault: None
    )


def certificate_at(address: str) -> str:
    """Return the certificate that the server at *address* presents to a new connection, as PEM."""
    host, _, port = address.partition(":")
    return ssl.get_server_certificate((host, int(port)), timeout=LONG_S)


async def call(address: str, authority: Authority, client: Pair | None = None) -> str:
    """Call the server once over TLS, as a client that trusts *authority*, and return the store's name."""
    key, cert = (None, None) if client is None else (client.key.read_bytes(), client.cert.read_bytes())
    credentials = grpc.ssl_channel_credentials(authority.ca.read_bytes(), key, cert)
    async with grpc.aio.secure_channel(address, credentials) as channel:
        stub: Any = CommitLogServiceStub(channel)
        return str((await stub.GetLogInfo(GetLogInfoRequest(), timeout=LONG_S)).store_name)


def test_connections_after_a_change_of_the_files_get_the_new_certificate(
    tmp_path: Path, server: Pair, authority: Authority
) -> None:
    other = authority.issue("renewed-writer")
    files, tls = files_of(tmp_path, server)

    async def run() -> None:
        async with serving(Log(), credentials=server_credentials(tls)) as address:
            for pair in (server, other, server):
                pair.put(files)
                tls.look()
                for _ in range(2):
                    assert await asyncio.to_thread(certificate_at, address) == pair.cert.read_text()
            assert await call(address, authority) == "fake"

    asyncio.run(run())


def test_client_needs_a_certificate_of_the_client_authority(tmp_path: Path, server: Pair, authority: Authority) -> None:
    foreign = Authority(tmp_path / "foreign", "Foreign authority").issue("intruder")
    client = authority.issue("client")
    _, tls = files_of(tmp_path, server, authority.ca)

    async def run() -> None:
        async with serving(Log(), credentials=server_credentials(tls)) as address:
            assert await call(address, authority, client) == "fake"
            for refused in (None, foreign):
                with pytest.raises(grpc.aio.AioRpcError) as failed:
                    await call(address, authority, refused)
                assert failed.value.code() is grpc.StatusCode.UNAVAILABLE

    asyncio.run(run())


def test_without_a_client_authority_a_client_needs_no_certificate(
    tmp_path: Path, server: Pair, authority: Authority
) -> None:
    _, tls = files_of(tmp_path, server)

    async def run() -> None:
        async with serving(Log(), credentials=server_credentials(tls)) as address:
            assert await call(address, authority) == "fake"

    asyncio.run(run())
