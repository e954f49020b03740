"""TLS: real handshakes, and connections that do not finish theirs."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.certificates import Authority, Pair
from tests.unit.remoting_server.served import ECHO, Served, advance, run, serving
from tests.unit.remoting_server.test_connection import frames, opaques
from tests.waiting import until_async
from tidemark.remoting_server.exchange import Exchange
from tidemark.tls.reloading import Reloading
from tidemark.tls.server_files import ClientAuth, ServerFiles


@pytest.fixture(scope="module")
def pair(authority: Authority) -> Pair:
    return authority.issue("remoting")


@pytest.fixture
def files(tmp_path: Path, pair: Pair) -> Pair:
    """Return a copy of the files, which a test replaces."""
    own = Pair(tmp_path / "cert.pem", tmp_path / "key.pem")
    pair.put(own)
    return own


def reloading(files: Pair, client_ca: Path | None = None) -> Reloading:
    auth = ClientAuth.NONE if client_ca is None else ClientAuth.REQUIRED
    return Reloading(ServerFiles(files.cert, files.key, client_ca, auth), every_ms=10, on_reload=lambda _: None)


def handshakes(served: Served) -> int:
    """Return the number of handshakes that have not ended."""
    assert served.server._listener is not None
    return len(served.server._listener.handshakes)


def context_of(authority: Authority, own: Pair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.ca))
    if own is not None:
        context.load_cert_chain(own.cert, own.key)
    return context


def test_requests_are_answered_over_tls(authority: Authority, files: Pair) -> None:
    """Also those that arrive together with the end of the handshake."""

    async def test() -> None:
        async with serving(tls=reloading(files)) as served:
            for _ in range(20):
                client = await served.client(context_of(authority), server_hostname="localhost")
                await client.send_bytes(frames(1, 2, 3))
                assert await opaques(client, 3) == [1, 2, 3]
            large = await client.call(ECHO, body=bytes(500_000))
            assert len(large.body) == 500_000
            assert served.server.connections == 20
            client.writer.close()
            await until_async(lambda: served.server.connections == 19)
            assert len(served.lost) == 1

    run(test)


def test_a_client_certificate_is_presented_to_the_guard(authority: Authority, files: Pair, pair: Pair) -> None:
    def show(exchange: Exchange) -> None:
        exchange.answer(body=exchange.connection.certificate or b"")

    async def test() -> None:
        async with serving({1: show}, tls=reloading(files, authority.ca)) as served:
            client = await served.client(context_of(authority, pair), server_hostname="localhost")
            answer = await client.call(1)
            assert bytes(answer.body) == ssl.PEM_cert_to_DER_cert(pair.cert.read_text())
            with capture_logs() as events:
                stranger = await served.client(context_of(authority), server_hostname="localhost")
                with pytest.raises((ConnectionError, ssl.SSLError)):
                    await stranger.call(1)
            assert [event["reason"] for event in events] == ["TLS_HANDSHAKE_FAILED"]

    run(test)


def test_plaintext_to_a_tls_port_is_closed_with_one_event(files: Pair) -> None:
    async def test() -> None:
        async with serving(tls=reloading(files)) as served:
            with capture_logs() as events:
                for data in (frames(1), b"GET / HTTP/1.1\r\n\r\n", frames(1)):
                    client = await served.client()
                    await client.send_bytes(data)
                    assert await client.is_closed()
            assert [(event["event"], event["address"], event["reason"]) for event in events] == [
                ("remoting_connection_refused", "127.0.0.1", "TLS_HANDSHAKE_FAILED")
            ]
            await until_async(lambda: not handshakes(served))

    run(test)


def test_a_check_of_the_port_is_no_event(files: Pair) -> None:
    async def test() -> None:
        async with serving(tls=reloading(files)) as served:
            with capture_logs() as events:
                for _ in range(3):
                    client = await served.client()
                    client.writer.close()
                await asyncio.sleep(0.05)
                await until_async(lambda: not handshakes(served))
            assert events == []
            assert served.lost == []

    run(test)


def test_unfinished_handshakes_count_as_connections_and_end(authority: Authority, files: Pair) -> None:
    """Otherwise silent clients could use up the process's files, which the store needs."""

    async def test() -> None:
        async with serving(tls=reloading(files), connections=3) as served:
            context = context_of(authority)
            used = await served.client(context, server_hostname="localhost")
            silent = [await served.client() for _ in range(2)]
            await until_async(lambda: handshakes(served) == 2)
            with capture_logs() as events:
                assert await (await served.client()).is_closed()
                assert (await used.call(ECHO)).code == 0
                await advance(11)
                for client in silent:
                    assert await client.is_closed()
            assert [event["reason"] for event in events] == ["TOO_MANY_CONNECTIONS", "TLS_HANDSHAKE_FAILED"]
            await until_async(lambda: not handshakes(served))
            again = await served.client(context, server_hostname="localhost")
            assert (await again.call(ECHO)).code == 0

    run(test)


def test_a_stop_ends_unfinished_handshakes(files: Pair) -> None:
    async def test() -> None:
        async with serving(tls=reloading(files)) as served:
            client = await served.client()
            await until_async(lambda: handshakes(served))
            await served.server.stop(0)
            assert await client.is_closed()
            await until_async(lambda: not handshakes(served))

    run(test)


def test_new_connections_get_a_replaced_certificate(authority: Authority, files: Pair) -> None:
    async def test() -> None:
        tls = reloading(files)
        async with serving(tls=tls) as served:
            following = asyncio.create_task(tls.follow())
            old = await served.client(context_of(authority), server_hostname="localhost")
            before = old.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            new = authority.issue("remoting-new")
            expected = ssl.PEM_cert_to_DER_cert(new.cert.read_text())
            assert before != expected
            new.put(files)
            for _ in range(1_000):
                client = await served.client(context_of(authority), server_hostname="localhost")
                if client.writer.get_extra_info("ssl_object").getpeercert(binary_form=True) == expected:
                    break
                await asyncio.sleep(0.01)
            else:
                raise AssertionError("the certificate was not replaced")
            assert (await old.call(ECHO)).code == (await client.call(ECHO)).code == 0
            following.cancel()

    run(test)
