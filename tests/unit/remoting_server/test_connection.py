"""Connection: frames from any pieces of bytes, limits of requests in work and of unsent answers, and timeouts."""

from __future__ import annotations

import asyncio
import struct
import sys
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.unit.remoting.frames import frame_bytes
from tests.unit.remoting_server.served import ECHO, Client, Served, advance, run, serving
from tests.waiting import until_async
from tidemark.format.host import decode_host
from tidemark.remoting import Frame, encode
from tidemark.remoting.codes import Language, Serialization
from tidemark.remoting_server.connection import Connection
from tidemark.remoting_server.exchange import Exchange

WAIT = 8
needs_pause_writing = pytest.mark.skipif(
    (3, 12) <= sys.version_info < (3, 12, 9) or (3, 13) <= sys.version_info < (3, 13, 2),
    reason="CVE-2024-12254: asyncio's writelines does not call pause_writing",
)


class Waiting:
    """A handler whose requests wait until they are released. exchanges: all that have begun."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.released = asyncio.Event()
        self.cancelled = 0

    def handle(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        self.exchanges.append(exchange)
        return self._rest(exchange)

    async def _rest(self, exchange: Exchange) -> None:
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        exchange.answer(0, {"n": exchange.frame.fields.get("n", "")})


def frames(*numbers: int, code: int = ECHO) -> bytes:
    """Return requests with the opaque numbers *numbers*, alternately in both serialisations."""
    return b"".join(
        encode(Frame(code, 0, number, Language.GO, 317, "", {"n": str(number)}, b"b", Serialization(number % 2)))
        for number in numbers
    )


async def opaques(client: Client, count: int) -> list[int]:
    return [(await client.receive()).opaque for _ in range(count)]


def of(served: Served) -> Connection:
    """Return the only connection."""
    (found,) = served.server._connections
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 64, 1_000])
def test_frames_arrive_in_pieces_of_any_size(size: int) -> None:
    """Both serialisations may alternate on a connection; all answers are in JSON."""

    async def test() -> None:
        async with serving() as served:
            client = await served.client()
            data = frames(*range(1, 9))
            for at in range(0, len(data), size):
                await client.send_bytes(data[at : at + size])
                await asyncio.sleep(0.001 if size < 9 else 0)
            for number in range(1, 9):
                answer = await client.receive()
                assert (answer.opaque, answer.flag, answer.version) == (number, 1, 479)
                assert answer.serialization is Serialization.JSON
                assert (answer.fields, bytes(answer.body)) == ({"n": str(number)}, b"b")

    run(test)


def test_frames_before_an_incomplete_one_are_answered_and_its_rest_completes_it() -> None:
    async def test() -> None:
        async with serving() as served:
            client = await served.client()
            data = frames(1, 2, 3)
            await client.send_bytes(data[:-1])
            assert await opaques(client, 2) == [1, 2]
            await client.send_bytes(data[-1:] + frames(4)[:6])
            assert await opaques(client, 1) == [3]
            await client.send_bytes(frames(4)[6:])
            assert await opaques(client, 1) == [4]

    run(test)


LONG = struct.pack(">iI", (1 << 20) + 1, 0)
ILLEGAL = {
    "LENGTH_TOO_SMALL": struct.pack(">iI", 3, 0),
    "LENGTH_EXCEEDED": LONG,
    "HEADER_EXCEEDS_FRAME": struct.pack(">iI", 8, 5) + b"{}{}",
    "SERIALIZATION_UNKNOWN": struct.pack(">iI", 6, 2 << 24 | 2) + b"{}",
    "NOT_JSON": frame_bytes(b"x"),
    "NOT_AN_OBJECT": frame_bytes(b"[]"),
    "MEMBER_ILLEGAL": frame_bytes(b'{"code":"7","opaque":1}'),
    "BINARY_HEADER_ILLEGAL": frame_bytes(b"\0\0", serialization=1),
}


@pytest.mark.parametrize("reason", ILLEGAL)
def test_illegal_bytes_close_the_connection_after_the_answers_before_them(reason: str) -> None:
    async def test() -> None:
        async with serving() as served:
            client = await served.client()
            await client.send_bytes(frames(1))
            assert await opaques(client, 1) == [1]
            with capture_logs() as events:
                await client.send_bytes(ILLEGAL[reason])
                assert await client.is_closed()
            (event,) = (event for event in events if event["event"] == "remoting_connection_refused")
            assert (event["address"], event["reason"]) == ("127.0.0.1", reason)
            await until_async(lambda: served.server.connections == 0)
            other = await served.client()
            assert (await other.call(ECHO)).code == 0

    run(test)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\xff" * 100,
    ],
    ids=["HTTP", "TLS hello", "HTTP/2", "0xff"],
)
def test_another_protocol_is_closed_without_an_answer(data: bytes) -> None:
    async def test() -> None:
        async with serving() as served:
            client = await served.client()
            await client.send_bytes(data)
            assert await client.is_closed()

    run(test)


def test_answers_of_clients_are_ignored() -> None:
    async def test() -> None:
        async with serving() as served:
            client = await served.client()
            for flag in (1, 3):
                await client.send_bytes(encode(Frame(ECHO, flag, 5, Language.JAVA, 479)))
            await client.send_bytes(frames(6))
            assert await opaques(client, 1) == [6]
            assert of(served).is_idle

    run(test)


def test_answers_come_in_the_order_in_which_requests_end() -> None:
    async def test() -> None:
        waiting = Waiting()
        async with serving({WAIT: waiting.handle}) as served:
            client = await served.client()
            await client.send_bytes(frames(1, code=WAIT) + frames(2, 2))  # an opaque number may repeat
            assert await opaques(client, 2) == [2, 2]
            assert not of(served).is_idle
            waiting.released.set()
            assert await opaques(client, 1) == [1]
            await until_async(lambda: of(served).is_idle)

    run(test)


def test_above_the_limit_of_requests_in_work_the_connection_is_not_read() -> None:
    """It is neither closed nor overdue; after the answers everything else is answered."""

    async def test() -> None:
        waiting = Waiting()
        async with serving({WAIT: waiting.handle}, in_flight=8) as served:
            client, other = await served.client(), await served.client()
            await client.send_bytes(frames(*range(9), code=WAIT))
            await until_async(lambda: len(waiting.exchanges) == 9)
            await client.send_bytes(frames(*range(100, 110)) + frames(110)[:20])
            await asyncio.sleep(0.05)
            assert (await other.call(ECHO)).code == 0
            assert len(waiting.exchanges) == 9
            asyncio.get_running_loop().ahead_s += 1_000  # type: ignore[attr-defined]
            assert of_exchange(waiting).overdue(asyncio.get_running_loop().time()) is None
            waiting.released.set()
            assert await opaques(client, 19) == [*range(9), *range(100, 110)]
            assert of_exchange(waiting).overdue(asyncio.get_running_loop().time()) is None, "the rest may still come"
            await client.send_bytes(frames(110)[20:])
            assert await opaques(client, 1) == [110]

    run(test)


def of_exchange(waiting: Waiting) -> Connection:
    return waiting.exchanges[0].connection


async def fill(served: Served, client: Client, exchange: Exchange) -> None:
    """Answer *exchange* with more than the kernel takes; the client has not read."""
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await until_async(lambda: exchange.connection._transport.get_write_buffer_size() > 1 << 16)


@needs_pause_writing
def test_a_client_that_takes_no_answers_is_not_read_and_is_cut_after_the_time() -> None:
    async def test() -> None:
        waiting = Waiting()
        async with serving({WAIT: waiting.handle, 9: big}, unsent_bytes=1 << 16, write_s=5, in_flight=1_000) as served:
            client = await served.client(limit=1 << 10)
            await client.send_bytes(frames(1, code=WAIT))
            await until_async(lambda: waiting.exchanges)
            connection = of_exchange(waiting)
            await client.send_bytes(frames(*range(20), code=9))
            await until_async(lambda: connection._is_paused)
            await client.send_bytes(frames(2, code=WAIT))
            await asyncio.sleep(0.05)
            assert len(waiting.exchanges) == 1
            assert connection.overdue(served.server.loop.time()) is None
            with capture_logs() as events:
                await advance(6)
                await until_async(lambda: served.server.connections == 0)
            assert [event["reason"] for event in events if "reason" in event] == ["ANSWERS_NOT_TAKEN"]
            await until_async(lambda: waiting.cancelled == 1)

    run(test)


def big(exchange: Exchange) -> None:
    exchange.answer(body=bytes(1 << 20))


@needs_pause_writing
def test_a_client_that_takes_its_answers_slowly_is_kept() -> None:
    """Only progress counts, and not the time until the unsent answers have become few."""

    async def test() -> None:
        async with serving({9: big}, unsent_bytes=1 << 16, write_s=5, in_flight=1_000) as served:
            client = await served.client(limit=1 << 10)
            await client.send_bytes(frames(*range(40), code=9))
            await until_async(lambda: of(served)._is_paused)
            connection, reader = of(served), client._reader
            for _ in range(8):
                before = connection._transport.get_write_buffer_size()
                while connection._transport.get_write_buffer_size() >= before:
                    await reader.read(1 << 18)
                served.server.loop.ahead_s += 3  # type: ignore[attr-defined]
                assert connection._is_paused
                assert connection.overdue(served.server.loop.time()) is None

    run(test)


def test_the_rest_of_a_frame_must_arrive_in_time() -> None:
    """Further bytes of it do not extend the time; whole frames do."""

    async def test() -> None:
        async with serving(frame_s=10) as served:
            client = await served.client()
            data = frames(1)
            await client.send_bytes(data[:5])
            await until_async(lambda: served.server.connections and of(served).incomplete_bytes)
            connection, loop = of(served), served.server.loop
            began = loop.time()
            await advance(6)
            await client.send_bytes(data[5:9])
            await until_async(lambda: connection.incomplete_bytes == 9)
            assert connection.overdue(began + 9) is None
            assert connection.overdue(began + 11) == "FRAME_INCOMPLETE"
            await client.send_bytes(data[9:] + frames(2)[:9])
            assert await opaques(client, 1) == [1]
            assert connection.overdue(began + 11) is None
            await client.send_bytes(frames(2)[9:])
            assert await opaques(client, 1) == [2]
            assert connection.overdue(began + 100) is None

    run(test)


def test_a_silent_connection_is_overdue_after_the_idle_time() -> None:
    async def test() -> None:
        async with serving(idle_s=30) as served:
            client = await served.client()
            await client.call(ECHO)
            connection, now = of(served), served.server.loop.time()
            assert connection.overdue(now + 29) is None
            assert connection.overdue(now + 31) == "IDLE"
            await advance(20)
            await client.call(ECHO)
            assert connection.overdue(now + 31) is None

    run(test)


def test_requests_in_work_are_cancelled_when_the_connection_ends() -> None:
    async def test() -> None:
        waiting = Waiting()
        async with serving({WAIT: waiting.handle}) as served:
            (client,) = await served.connected()
            await client.send_bytes(frames(1, 2, code=WAIT))
            await until_async(lambda: len(waiting.exchanges) == 2)
            connection = of(served)
            client.writer.transport.abort()
            await until_async(lambda: waiting.cancelled == 2)
            assert served.lost == [connection]
            waiting.exchanges[0].answer()  # a late answer, as of a stored batch, goes nowhere
            connection.notify(Frame(40, 2, 1, Language.JAVA, 479))

    run(test)


def count_writes(served: Served, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of buffers of each write."""
    writes: list[int] = []
    transport = of(served)._transport
    writelines = transport.writelines

    def counted(data: Sequence[Any]) -> None:
        writes.append(len(data))
        writelines(data)

    monkeypatch.setattr(transport, "writelines", counted)
    return writes


def test_many_answers_of_one_turn_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with serving(in_flight=1_000) as served:
            client = await served.client()
            await client.call(ECHO)
            writes = count_writes(served, monkeypatch)
            await client.send_bytes(frames(*range(100)))
            await opaques(client, 100)
            assert 1 <= len(writes) <= 5

    run(test)


def test_late_answers_of_one_turn_are_written_together_with_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one does not wait for the end of the turn."""
    asked: list[Exchange] = []

    async def test() -> None:
        async with serving({WAIT: asked.append}) as served:
            client = await served.client()
            await client.send_bytes(frames(1, 2, 3, code=WAIT))
            await until_async(lambda: len(asked) == 3)
            writes = count_writes(served, monkeypatch)
            asked[0].answer()
            asked[1].answer()
            assert writes == []
            asked[2].answer()
            assert writes == [3]
            assert await opaques(client, 3) == [1, 2, 3]
            await client.send_bytes(frames(4, 5, code=WAIT))
            await until_async(lambda: len(asked) == 5)
            asked[3].answer()
            assert await opaques(client, 1) == [4]
            assert writes == [3, 1]
            asked[4].answer()

    run(test)


def test_the_address_is_that_of_the_client() -> None:
    async def test() -> None:
        async with serving() as served:
            client = await served.client()
            await client.call(ECHO)
            assert of(served).address == "127.0.0.1"
            host = decode_host(of(served).host)
            assert (host.address, host.port) == client.writer.get_extra_info("sockname")

    run(test)
