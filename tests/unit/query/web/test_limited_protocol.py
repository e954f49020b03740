from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from tests.unit.query.web.connections import LIMITS, Connections, answered, refusal_in
from tests.waiting import until_async

SOON_S = 0.01
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
KIB_64 = 64 << 10


def test_a_request_is_answered_and_the_connection_stays_open() -> None:
    async def ask() -> None:
        protocol, transport = Connections().open()
        for number, body in enumerate((b"one", b"two"), 1):
            protocol.data_received(b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n" + body)
            await answered(transport, number)
            assert transport.written.endswith(body)
        assert not transport.is_closed

    asyncio.run(ask())


def test_an_answered_request_leaves_nothing_to_the_garbage_collector() -> None:
    """With hundreds of requests a second, a collection of what they leave stops the event loop for milliseconds."""

    async def ask() -> None:
        protocol, transport = Connections().open()
        protocol.data_received(GET)
        await answered(transport)
        first = weakref.ref(protocol.cycle)
        protocol.data_received(GET)
        await answered(transport, 2)
        assert first() is None

    gc.disable()
    try:
        asyncio.run(ask())
    finally:
        gc.enable()


def test_a_connection_above_the_limit_is_refused_and_the_others_stay() -> None:
    async def ask() -> None:
        connections = Connections()
        protocol, transport = connections.open()
        _, second = connections.open()
        _, third = connections.open()
        assert refusal_in(third) == (429, "IN_FLIGHT_LIMIT")
        assert not second.is_closed
        protocol.data_received(GET)
        await answered(transport)

    asyncio.run(ask())


def test_a_connection_that_ends_makes_room_for_another() -> None:
    async def ask() -> None:
        connections = Connections(LIMITS._replace(connections=1))
        protocol, _ = connections.open()
        protocol.connection_lost(None)
        _, transport = connections.open()
        assert not transport.is_closed

    asyncio.run(ask())


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nX: " + b"x" * 1000 + b"\r\n\r\n",
        b"GET /" + b"x" * 1000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200,
        b"GET / HTTP/1.1\r\nX: " + b"x" * 1000,
    ],
)
def test_a_head_above_the_limit_is_refused(head: bytes) -> None:
    """The limit also applies to a head that arrives in pieces or never ends."""

    async def ask() -> None:
        for size in (len(head), 100):
            protocol, transport = Connections().open()
            for at in range(0, len(head), size):
                if not transport.is_closed:
                    protocol.data_received(head[at : at + size])
            assert refusal_in(transport) == (431, "HEAD_TOO_LARGE")

    asyncio.run(ask())


def test_the_limit_of_a_head_counts_each_request_alone() -> None:
    async def ask() -> None:
        protocol, transport = Connections().open()
        for number in range(1, 5):
            protocol.data_received(b"GET / HTTP/1.1\r\nX: " + b"x" * 400 + b"\r\n\r\n")
            await answered(transport, number)

    asyncio.run(ask())


@pytest.mark.parametrize("data", [b"\x16\x03\x01\x02\x00", b"nonsense\r\n\r\n"])
def test_bytes_that_are_not_http_are_refused(data: bytes) -> None:
    async def ask() -> None:
        protocol, transport = Connections().open()
        protocol.data_received(data)
        assert refusal_in(transport) == (400, "BAD_REQUEST")

    asyncio.run(ask())


@pytest.mark.parametrize("begun", [b"", b"GET / HT"])
def test_a_head_that_times_out_is_refused(begun: bytes) -> None:
    async def ask() -> None:
        protocol, transport = Connections(LIMITS._replace(head_s=SOON_S)).open()
        if begun:
            protocol.data_received(begun)
        await until_async(lambda: transport.is_closed)
        assert refusal_in(transport) == (408, "REQUEST_TIMEOUT")

    asyncio.run(ask())


def test_a_body_that_times_out_ends_the_connection() -> None:
    """A handler waits for it already, so the connection is cut without an answer."""

    async def ask() -> None:
        protocol, transport = Connections(LIMITS._replace(body_s=SOON_S)).open()
        protocol.data_received(b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n12345")
        await until_async(lambda: transport.is_aborted)
        assert transport.written == b""
        protocol.connection_lost(None)

    asyncio.run(ask())


def test_a_client_that_reads_its_answer_too_slowly_is_disconnected() -> None:
    """At each check the client must have read 64 KiB since the previous check; here it fails the third check."""

    async def answer() -> None:
        protocol, transport = Connections(LIMITS._replace(write_s=SOON_S)).open()
        transport.unsent = [5 * KIB_64, 4 * KIB_64, 3 * KIB_64, 2 * KIB_64 + 1, 0]
        protocol.pause_writing()
        await until_async(lambda: transport.is_aborted)
        assert transport.unsent == [0]

    asyncio.run(answer())


def test_a_client_that_has_caught_up_is_not_disconnected() -> None:
    async def answer() -> None:
        connections = Connections(LIMITS._replace(write_s=SOON_S))
        protocol, quick = connections.open()
        protocol.pause_writing()
        protocol.resume_writing()
        other, slow = connections.open()
        other.pause_writing()  # its timer is later than the first one would have been
        await until_async(lambda: slow.is_aborted)
        assert not quick.is_aborted

    asyncio.run(answer())
