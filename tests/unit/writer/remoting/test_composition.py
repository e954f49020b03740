"""WriterRemoting: the handlers of a writer, and the members that it saves at a stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from services.writer.config import WriterSettings
from services.writer.remoting.composition import WriterRemoting
from tests.builders import STORE_HOST
from tests.unit.remoting_server.served import Client, anyone
from tests.unit.remoting_server.test_group_requests import answered, heartbeat, members
from tests.unit.writer.opened_log import LONG_S
from tests.unit.writer.submission.submitting import submitting_at
from tests.waiting import until_async
from tidemark.remoting import RequestCode
from tidemark.remoting.routes import parse_route
from tidemark.remoting_server.saved_clients import load_clients

Connect = Callable[[], Coroutine[Any, Any, Client]]


def run(test: Callable[[WriterRemoting, Connect], Coroutine[Any, Any, None]], root: Path, **settings: Any) -> None:
    """Run *test* with a server over the store at *root*, and stop it."""

    async def main() -> None:
        async with submitting_at(root) as parts:
            given = WriterSettings(store_root=root, writer_remoting_listen="127.0.0.1:0", **settings)
            remoting = WriterRemoting(
                given, parts.opened.store, parts.submitter, parts.topics, STORE_HOST, anyone(), None
            )
            await remoting.bind()
            await remoting.start()
            clients: list[Client] = []

            async def connect() -> Client:
                clients.append(Client(*await asyncio.open_connection("127.0.0.1", remoting.server.port)))
                return clients[-1]

            await asyncio.wait_for(test(remoting, connect), LONG_S)
            await asyncio.wait_for(remoting.stop(1), LONG_S)
            for client in clients:
                client.writer.transport.abort()
            await asyncio.sleep(0.01)

    asyncio.run(main())


def test_every_request_of_the_protocol_has_a_handler(tmp_path: Path) -> None:
    """Or is refused on purpose: nothing is forgotten when a code is added."""

    async def test(remoting: WriterRemoting, connect: Connect) -> None:
        handlers = remoting._handlers(remoting._settings.route_addresses())
        unhandled = {RequestCode(code) for code in RequestCode} - handlers.keys()
        assert unhandled == {RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.NOTIFY_CONSUMER_IDS_CHANGED}

    run(test, tmp_path)


def test_members_are_saved_at_a_stop_and_listed_after_it(tmp_path: Path) -> None:
    """The connections that close at a stop do not remove them."""

    async def first(remoting: WriterRemoting, connect: Connect) -> None:
        one, two = await connect(), await connect()
        for client, name in ((one, "a"), (two, "b")):
            assert (await answered(client, RequestCode.HEART_BEAT, body=heartbeat(name))).code == 0

    async def second(remoting: WriterRemoting, connect: Connect) -> None:
        one = await connect()
        await answered(one, RequestCode.HEART_BEAT, body=heartbeat("a"))
        assert sorted(await members(one) or ()) == ["a", "b"]

    run(first, tmp_path)
    (path,) = tmp_path.rglob("*clients*")
    assert load_clients(path) == {"g": ["a", "b"]}
    run(second, tmp_path)


def test_a_client_that_leaves_is_not_saved(tmp_path: Path) -> None:
    async def test(remoting: WriterRemoting, connect: Connect) -> None:
        one, two = await connect(), await connect()
        await answered(one, RequestCode.HEART_BEAT, body=heartbeat("a"))
        await answered(two, RequestCode.HEART_BEAT, body=heartbeat("b"))
        two.writer.close()
        await until_async(lambda: remoting.server.connections == 1)
        assert await members(one) == ["a"]

    run(test, tmp_path)
    (path,) = tmp_path.rglob("*clients*")
    assert load_clients(path) == {"g": ["a"]}


def test_routes_have_the_bound_port_and_the_settings(tmp_path: Path) -> None:
    async def test(remoting: WriterRemoting, connect: Connect) -> None:
        answer = await answered(await connect(), 105, {"topic": "TBW102"})
        route = parse_route(answer.body)
        found = [(broker.broker_name, broker.cluster, broker.broker_addrs[0]) for broker in route.brokers]
        assert found == [("s", "c", f"127.0.0.1:{remoting.server.port}"), ("s-r", "c", "q:1")]
        assert {queue.write_queue_nums for queue in route.queues} == {7}

    given = {"store_name": "s", "cluster_name": "c", "query_remoting_address": "q:1", "default_queues": 7}
    run(test, tmp_path, **given)


def test_a_writer_that_creates_no_topics_has_no_route_for_new_ones(tmp_path: Path) -> None:
    async def test(remoting: WriterRemoting, connect: Connect) -> None:
        assert (await answered(await connect(), 105, {"topic": "TBW102"})).code == 17

    run(test, tmp_path, auto_create_topics=False)


def test_families_have_the_number_of_connections(tmp_path: Path) -> None:
    async def test(remoting: WriterRemoting, connect: Connect) -> None:
        await answered(await connect(), 105, {"topic": "x"})
        samples = {sample.name: sample.value for family in remoting.families() for sample in family.samples}
        assert samples["tidemark_remoting_connections"] == 1

    run(test, tmp_path)
