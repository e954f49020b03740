"""RemotingServer: the limit of connections, the log of refused ones, the scan, and the stop."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest
from structlog.testing import capture_logs

from tests.unit.remoting.frames import frame_bytes
from tests.unit.remoting_server import served as helpers
from tests.unit.remoting_server.served import ECHO, LIMITS, advance, anyone, run, serving
from tests.unit.remoting_server.test_connection import WAIT, Waiting, frames
from tests.waiting import until_async
from tidemark.remoting_server import server as module
from tidemark.remoting_server.server import RemotingServer


def test_a_connection_above_the_limit_is_closed_and_a_closed_one_makes_room() -> None:
    async def test() -> None:
        async with serving(connections=2) as served:
            one, two = await served.connected(2)
            with capture_logs() as events:
                for _ in range(3):
                    assert await (await served.client()).is_closed()
            assert [(event["reason"], event["limit"]) for event in events] == [("TOO_MANY_CONNECTIONS", 2)]
            assert (await one.call(ECHO)).code == (await two.call(ECHO)).code == 0
            two.writer.close()
            await until_async(lambda: served.server.connections == 1)
            assert (await (await served.client()).call(ECHO)).code == 0
            assert len(served.lost) == 1, "refused connections have not been there"

    run(test)


def test_the_limit_of_connections_leaves_files_for_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "connections_within", lambda most: most // 2)
    server = RemotingServer(LIMITS, anyone(), None)
    assert server.limits == LIMITS._replace(connections=LIMITS.connections // 2)


def test_refused_connections_are_logged_once_a_minute_by_address_and_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are counted each time."""
    now = 1_000.0
    monkeypatch.setattr("tidemark.remoting_server.server.time.monotonic", lambda: now)
    server = RemotingServer(LIMITS, anyone(), None)
    with capture_logs() as events:
        for _ in range(100):
            server.refused("10.0.0.1", "NOT_JSON", message="m")
            server.refused("10.0.0.2", "NOT_JSON")
            server.refused("10.0.0.1", "IDLE")
        now += 59
        server.refused("10.0.0.1", "NOT_JSON")
        assert len(events) == 3
        now += 2
        server.refused("10.0.0.1", "NOT_JSON")
        assert len(events) == 4
        assert events[0] == {
            "event": "remoting_connection_refused",
            "log_level": "warning",
            "address": "10.0.0.1",
            "reason": "NOT_JSON",
            "message": "m",
        }
        for number in range(30_000):
            server.refused(f"a{number}", "NOT_JSON")
        assert len(server._logged) <= 10_000
    family = next(f for f in server.counts.families(0) if f.name == "tidemark_remoting_refused_connections")
    assert {sample.labels["reason"]: sample.value for sample in family.samples} == {"NOT_JSON": 30_202, "IDLE": 100}


@pytest.mark.parametrize(("data", "reason"), [(b"", "IDLE"), (b"\0\0", "FRAME_INCOMPLETE")])
def test_overdue_connections_are_cut(data: bytes, reason: str) -> None:
    async def test() -> None:
        async with serving(idle_s=50, frame_s=20) as served:
            client, kept = await served.connected(2)
            await client.send_bytes(data)
            await asyncio.sleep(0.01)
            with capture_logs() as events:
                await advance(30)
                await kept.call(ECHO)
                await until_async(lambda: served.server.connections == 1 or reason == "IDLE")
                await advance(25)
                await until_async(lambda: served.server.connections == 1)
            assert [event["reason"] for event in events] == [reason]
            assert (await kept.call(ECHO)).code == 0
            with contextlib.suppress(ConnectionError):
                assert await client.is_closed()

    run(test)


def test_incomplete_frames_of_all_connections_are_limited() -> None:
    """The connection with the largest one is cut: strangers could otherwise fill the memory."""

    async def test() -> None:
        async with serving(incomplete_bytes=149_000) as served:
            small, large, other = await served.connected(3)
            data, shorter = (frame_bytes(b'{"code":7,"opaque":5}', bytes(size)) for size in (70_000, 69_000))
            await small.send_bytes(data[:10_000])
            await large.send_bytes(data[:60_000])
            await until_async(lambda: served.server._incomplete_bytes == 10_000 + len(data))  # room for all of it
            with capture_logs() as events:
                await other.send_bytes(shorter[:30_000])
                await until_async(lambda: served.server.connections == 2)
            assert [(event["reason"], event["bytes"]) for event in events] == [
                ("INCOMPLETE_FRAMES_EXCEEDED", len(data))
            ]
            for client, rest in ((small, data[10_000:]), (other, shorter[30_000:])):
                await client.send_bytes(rest)
                assert (await client.receive()).opaque == 5
            assert served.server._incomplete_bytes == 0
            await small.send_bytes(data[:10])
            await other.send_bytes(data[:10] + b"\xff" * 9)
            await until_async(lambda: served.server._incomplete_bytes == 29)
            small.writer.close()
            await until_async(lambda: served.server._incomplete_bytes == 19)
            await other.send_bytes(data[19:] + b"\xff" * 9)
            await until_async(lambda: served.server.connections == 0)
            assert served.server._incomplete_bytes == 0

    run(test)


def test_a_stop_answers_requests_in_work_and_refuses_new_ones() -> None:
    """GO_AWAY makes Java's client connect again and repeat the request; group members are kept for the next process."""

    async def test() -> None:
        waiting = Waiting()
        async with serving({WAIT: waiting.handle}) as served:
            client, idle = await served.connected(2)
            await client.send_bytes(frames(1, code=WAIT))
            await until_async(lambda: waiting.exchanges)
            stopping = asyncio.create_task(served.server.stop(60))
            await asyncio.sleep(0.05)
            assert served.server.is_stopping
            answer = await idle.call(ECHO)
            assert (answer.code, answer.remark) == (1500, "the service is stopping: connect again")
            with pytest.raises(ConnectionRefusedError):
                await served.client()
            assert not stopping.done()
            waiting.released.set()
            await asyncio.wait_for(stopping, helpers.LONG_S)
            assert (await client.receive()).opaque == 1
            assert await client.is_closed()
            assert await idle.is_closed()
            await until_async(lambda: served.server.connections == 0)
            assert served.lost == []

    run(test)


def test_a_stop_ends_after_the_grace_time() -> None:
    async def test() -> None:
        waiting = Waiting()
        async with serving({WAIT: waiting.handle}) as served:
            (client,) = await served.connected()
            await client.send_bytes(frames(1, code=WAIT))
            await until_async(lambda: waiting.exchanges)
            await asyncio.wait_for(served.server.stop(0.1), helpers.LONG_S)
            assert await client.is_closed()
            await until_async(lambda: waiting.cancelled == 1)

    run(test)


def test_a_connection_that_comes_at_a_stop_is_closed_without_an_event() -> None:
    async def test() -> None:
        async with serving() as served:
            served.server._dispatcher.is_stopping = True
            with capture_logs() as events:
                assert await (await served.client()).is_closed()
            assert events == []

    run(test)


def test_an_address_in_use_is_refused() -> None:
    async def test() -> None:
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            held.listen()
            server = RemotingServer(LIMITS, anyone(), None)
            with pytest.raises(OSError, match="in use"):
                await server.bind(f"127.0.0.1:{held.getsockname()[1]}")

    run(test)


def test_clients_are_accepted_only_from_the_start_on() -> None:
    """The port is known before, for routes."""

    async def test() -> None:
        server = RemotingServer(LIMITS, anyone(), None)
        await server.bind("127.0.0.1:0")
        assert server.port
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", server.port)
        await server.start({})
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.transport.abort()
        await server.stop(0)
        await asyncio.sleep(0.01)

    run(test)
