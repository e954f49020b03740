from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any

import pytest

from services.indexer.query.remoting import composition
from services.indexer.query.remoting.composition import QueryRemoting
from tests.built_store import BuiltStore
from tests.unit.query.remoting.desk import consumer
from tests.unit.query.served_app import WAIT_S, ServedApp
from tidemark.remoting import Frame, RequestCode, decode, encode
from tidemark.remoting.codes import ResponseCode
from tidemark.remoting.frame import request
from tidemark.remoting.groups import BrokerQueue, QueueLock, parse_consumer_list, parse_locked_queues, queue_lock_body
from tidemark.remoting.heartbeats import HeartbeatData, heartbeat_body
from tidemark.remoting.routes import parse_route
from tidemark.remoting_server import client_groups

_LISTEN: dict[str, Any] = {"query_remoting_listen": "127.0.0.1:0", "remoting_offset_interval_ms": 60_000}
_QUEUE = BrokerQueue("tidemark-0-r", 0, "orders")
_COMMIT = {"consumerGroup": "g", "topic": "orders", "queueId": 0, "commitOffset": 3}
_GROUP = {"consumerGroup": "g"}


def heartbeat(client_id: str = "c1") -> bytes:
    return heartbeat_body(HeartbeatData(client_id, (), (consumer("g"),)))


class Line:
    """One connection on the service's event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self.notices: list[Frame] = []
        self._opaque = 0

    @classmethod
    async def open(cls, remoting: QueryRemoting) -> Line:
        return cls(*await asyncio.open_connection("127.0.0.1", remoting.server.port))

    async def call(self, code: int, fields: Mapping[str, object] | None = None, body: bytes = b"") -> Frame:
        await self.send(code, fields, body)
        async with asyncio.timeout(WAIT_S):
            while True:
                size = await self._reader.readexactly(4)
                frame = decode(size + await self._reader.readexactly(int.from_bytes(size, "big")))
                if frame.is_answer:
                    assert frame.opaque == self._opaque
                    return frame
                self.notices.append(frame)

    async def stop(self, remoting: QueryRemoting) -> None:
        """Stop the server, and close the connection."""
        await remoting.stop(0)
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    async def send(
        self, code: int, fields: Mapping[str, object] | None = None, body: bytes = b"", *, one_way: bool = False
    ) -> None:
        self._opaque += 1
        texts = {name: str(value) for name, value in (fields or {}).items()}
        self.writer.write(encode(request(code, texts, body, opaque=self._opaque, one_way=one_way)))
        await self.writer.drain()


async def started(service: ServedApp) -> tuple[QueryRemoting, Line]:
    remoting = QueryRemoting(service.state, None)
    await remoting.bind()
    await remoting.start()
    return remoting, await Line.open(remoting)


def test_every_request_of_consumers_is_served_and_every_other_one_is_refused(built: BuiltStore) -> None:
    """Sending is for the writer; a refusal says so."""
    senders = {RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}
    refused = {
        RequestCode.SEND_REPLY_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
        RequestCode.QUERY_ASSIGNMENT,
        RequestCode.POP_MESSAGE,
        RequestCode.ACK_MESSAGE,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        RequestCode.NOTIFICATION,
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
    }

    async def run() -> dict[RequestCode, int]:
        remoting, line = await started(service)
        answers = {code: (await line.call(code)).code for code in RequestCode}
        await line.stop(remoting)
        return answers

    with ServedApp(built, **_LISTEN) as service:
        answers = service.run(run())
    unsupported = {code for code, answer in answers.items() if answer == ResponseCode.REQUEST_CODE_NOT_SUPPORTED}
    assert unsupported == senders | refused


def test_routes_name_this_server_as_the_broker_to_read_from(built: BuiltStore) -> None:
    async def run() -> tuple[int, Frame]:
        remoting, line = await started(service)
        answer = await line.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "orders"})
        await line.stop(remoting)
        return remoting.server.port, answer

    with ServedApp(built, writer_remoting_address="writer:10911", **_LISTEN) as service:
        port, answer = service.run(run())
    route = parse_route(answer.body)
    addresses = {broker.broker_name: broker.broker_addrs[0] for broker in route.brokers}
    assert addresses == {"tidemark-0": "writer:10911", "tidemark-0-r": f"127.0.0.1:{port}"}
    assert {(queue.broker_name, queue.perm, queue.read_queue_nums) for queue in route.queues} == {
        ("tidemark-0", 2, 2),
        ("tidemark-0-r", 4, 2),
    }


def test_a_second_process_refuses_requests_about_groups_and_serves_the_others(built: BuiltStore) -> None:
    async def run() -> dict[int, Frame]:
        remoting, line = await started(second)
        asked: list[tuple[int, dict[str, Any], bytes]] = [
            (RequestCode.HEART_BEAT, {}, heartbeat()),
            (RequestCode.UNREGISTER_CLIENT, {"clientID": "c1"}, b""),
            (RequestCode.GET_CONSUMER_LIST_BY_GROUP, _GROUP, b""),
            (RequestCode.LOCK_BATCH_MQ, {}, queue_lock_body(QueueLock("c1", "g", (_QUEUE,)))),
            (RequestCode.UNLOCK_BATCH_MQ, {}, queue_lock_body(QueueLock("c1", "g", (_QUEUE,)))),
            (RequestCode.UPDATE_CONSUMER_OFFSET, _COMMIT, b""),
            (RequestCode.QUERY_CONSUMER_OFFSET, _COMMIT, b""),
            (RequestCode.GET_MAX_OFFSET, _COMMIT, b""),
        ]
        answers = {code: await line.call(code, fields, body) for code, fields, body in asked}
        await line.stop(remoting)
        return answers

    with ServedApp(built, **_LISTEN) as first, ServedApp(built, **_LISTEN) as second:
        first.ask("PUT", "/v1/groups/g/topics/orders/queues/0/offset", json={"offset": 2})
        answers = second.run(run())
    assert answers.pop(RequestCode.QUERY_CONSUMER_OFFSET).fields["offset"] == "2"
    assert answers.pop(RequestCode.GET_MAX_OFFSET).fields["offset"] == "6"
    assert {(answer.code, answer.fields["tidemarkReason"]) for answer in answers.values()} == {
        (ResponseCode.SERVICE_NOT_AVAILABLE, "STORE_LOCKED")
    }


def test_a_stop_writes_the_last_commits_and_the_members(built: BuiltStore) -> None:
    async def run() -> None:
        remoting, line = await started(service)
        await line.call(RequestCode.HEART_BEAT, {}, heartbeat())
        await line.send(RequestCode.UPDATE_CONSUMER_OFFSET, _COMMIT, one_way=True)
        assert (await line.call(RequestCode.QUERY_CONSUMER_OFFSET, _COMMIT)).fields["offset"] == "3"
        assert service.state.offsets.get("g", "orders", 0) is None
        await line.stop(remoting)

    with ServedApp(built, **_LISTEN) as service:
        service.run(run())
        assert service.state.offsets.get("g", "orders", 0) == 3
        saved = json.loads(service.state.store.paths.query_clients.read_text())
    assert saved["groups"] == {"g": ["c1"]}


def test_after_a_restart_all_members_of_before_are_listed(built: BuiltStore) -> None:
    """Also those that have not sent a heartbeat yet; a reset over REST is refused, because the members still run."""

    async def before() -> None:
        remoting, line = await started(service)
        for client_id in ("c1", "c2"):
            await line.call(RequestCode.HEART_BEAT, {}, heartbeat(client_id))
        await line.stop(remoting)

    async def after() -> None:
        remoting, line = await started(service)
        for client_id in ("c1", "c2"):
            answer = await line.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, _GROUP)
            assert sorted(parse_consumer_list(answer.body)) == ["c1", "c2"]
            reset = await service.client.put("/v1/groups/g/topics/orders/queues/0/offset", json={"offset": 1})
            assert reset.json()["reason"] == "GROUP_ACTIVE"
            await line.call(RequestCode.HEART_BEAT, {}, heartbeat(client_id))
        answer = await line.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, _GROUP)
        assert sorted(parse_consumer_list(answer.body)) == ["c1", "c2"]
        await line.stop(remoting)

    with ServedApp(built, **_LISTEN) as service:
        service.run(before())
    with ServedApp(built, **_LISTEN) as service:
        service.run(after())


def test_a_process_that_takes_over_the_groups_lists_all_their_members(built: BuiltStore) -> None:
    """It has started before the other process had them."""

    async def beside() -> tuple[QueryRemoting, Line]:
        remoting, line = await started(second)
        assert (await line.call(RequestCode.HEART_BEAT, {}, heartbeat("c1"))).code != ResponseCode.SUCCESS
        return remoting, line

    async def before() -> None:
        remoting, line = await started(first)
        for client_id in ("c1", "c2"):
            await line.call(RequestCode.HEART_BEAT, {}, heartbeat(client_id))
        await line.stop(remoting)

    async def after() -> None:
        for client_id in ("c1", "c2"):
            answer = await line.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, _GROUP)
            assert sorted(parse_consumer_list(answer.body)) == ["c1", "c2"]
            await line.call(RequestCode.HEART_BEAT, {}, heartbeat(client_id))
        answer = await line.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, _GROUP)
        assert sorted(parse_consumer_list(answer.body)) == ["c1", "c2"]
        await line.stop(remoting)

    with ServedApp(built, **_LISTEN) as first, ServedApp(built, **_LISTEN) as second:
        remoting, line = second.run(beside())
        first.run(before())
        first.run(first.state.close())
        second.run(after())


def test_new_requests_are_told_to_go_away_when_the_service_stops(built: BuiltStore) -> None:
    async def run() -> Frame:
        remoting, line = await started(service)
        await line.call(RequestCode.GET_MAX_OFFSET, _COMMIT)
        remoting.refuse_new()
        answer = await line.call(RequestCode.GET_MAX_OFFSET, _COMMIT)
        await line.stop(remoting)
        return answer

    with ServedApp(built, **_LISTEN) as service:
        answer = service.run(run())
    assert answer.code == ResponseCode.GO_AWAY


def test_locks_of_a_client_that_has_become_silent_are_freed(built: BuiltStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "_EXPIRE_S", 0.01)
    monkeypatch.setattr(client_groups, "_SILENT_S", 0.05)

    async def run() -> None:
        remoting, line = await started(service)
        await line.call(RequestCode.HEART_BEAT, {}, heartbeat("c1"))
        await line.call(RequestCode.LOCK_BATCH_MQ, {}, queue_lock_body(QueueLock("c1", "g", (_QUEUE,))))
        wanted = queue_lock_body(QueueLock("c2", "g", (_QUEUE,)))
        async with asyncio.timeout(WAIT_S):
            while not parse_locked_queues((await line.call(RequestCode.LOCK_BATCH_MQ, {}, wanted)).body):
                pass
        await line.stop(remoting)

    with ServedApp(built, **_LISTEN) as service:
        service.run(run())


def test_requests_and_connections_are_metrics(built: BuiltStore) -> None:
    async def run() -> dict[str, list[tuple[dict[str, str], float]]]:
        remoting, line = await started(service)
        await line.call(RequestCode.GET_MAX_OFFSET, _COMMIT)
        await line.call(RequestCode.SEND_MESSAGE, {})
        await line.call(123_456, {})
        found = {
            family.name: [(sample.labels, sample.value) for sample in family.samples] for family in remoting.collect()
        }
        await line.stop(remoting)
        return found

    with ServedApp(built, **_LISTEN) as service:
        found = service.run(run())
    assert found["tidemark_remoting_connections"] == [({}, 1)]
    assert found["tidemark_remoting_refused_connections"] == []
    unsupported = "REQUEST_CODE_NOT_SUPPORTED"
    assert found["tidemark_remoting_requests"] == [
        ({"request": "GET_MAX_OFFSET", "response": "SUCCESS"}, 1),
        ({"request": "SEND_MESSAGE", "response": unsupported}, 1),
        ({"request": "OTHER", "response": unsupported}, 1),
    ]
