"""Heartbeats, leaving clients and lists of members, over real connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.access_files import AccessFolder
from tests.unit.remoting_server.served import Client, Served, run, serving
from tests.waiting import until_async
from tidemark.access.access_file import AccessFile
from tidemark.access.guard import Guard
from tidemark.access.rate_limits import RateLimits
from tidemark.remoting import Frame, RequestCode, ResponseCode
from tidemark.remoting.groups import parse_consumer_list
from tidemark.remoting.heartbeats import (
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
    heartbeat_body,
)
from tidemark.remoting_server.client_groups import ClientGroups
from tidemark.remoting_server.group_requests import GroupLimits, GroupRequests
from tidemark.settings.reloaded_files import ReloadedFiles


class Groups(NamedTuple):
    """A server with the requests of groups. gone: calls of on_gone."""

    served: Served
    groups: ClientGroups
    requests: GroupRequests
    gone: list[tuple[str, str | None]]


@asynccontextmanager
async def group_server(guard: Guard | None = None, limits: GroupLimits | None = None) -> AsyncIterator[Groups]:
    gone: list[tuple[str, str | None]] = []
    groups = ClientGroups()
    requests = GroupRequests(
        groups, limits or GroupLimits(5, 5, 5), on_gone=lambda client, group: gone.append((client, group))
    )
    async with serving(requests.handlers(), guard=guard) as served:
        served.server._on_lost = requests.lost
        yield Groups(served, groups, requests, gone)


def heartbeat(client_id: str = "a", *groups: str, topics: tuple[str, ...] = ("t",), pulls: bool = False) -> bytes:
    kind = ConsumeType.CONSUME_ACTIVELY if pulls else ConsumeType.CONSUME_PASSIVELY
    subscriptions = tuple(SubscriptionData(topic, "*", 1) for topic in topics)
    consumers = tuple(
        ConsumerData(group, kind, MessageModel.CLUSTERING, "", subscriptions) for group in groups or ("g",)
    )
    return heartbeat_body(HeartbeatData(client_id, (), consumers))


async def answered(client: Client, code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> Frame:
    """Send a request and return its answer; notices before it are passed over."""
    opaque = await client.send(code, fields, body)
    while True:
        frame = await client.receive()
        if frame.is_answer:
            assert frame.opaque == opaque
            return frame


async def members(client: Client, group: str = "g") -> list[str] | None:
    answer = await answered(client, RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
    if answer.code:
        assert (answer.code, answer.remark) == (1, f"no consumer for this group, {group}")
        return None
    return list(parse_consumer_list(answer.body))


def test_a_member_is_listed_when_its_heartbeat_is_answered_and_until_its_connection_closes() -> None:
    async def test() -> None:
        async with group_server() as (served, _, _, gone):
            one, two = await served.connected(2)
            assert await members(one) is None
            assert (await answered(one, RequestCode.HEART_BEAT, body=heartbeat("a"))).code == 0
            assert await members(one) == ["a"]
            await answered(two, RequestCode.HEART_BEAT, body=heartbeat("a"))
            await answered(two, RequestCode.HEART_BEAT, body=heartbeat("b"))
            assert sorted(await members(two) or ()) == ["a", "b"]
            two.writer.close()
            await until_async(lambda: gone)
            assert gone == [("b", None)]
            assert await members(one) == ["a"]

    run(test)


def test_an_answer_to_a_heartbeat_has_no_fields() -> None:
    """IS_SUPPORT_HEART_BEAT_V2 would make clients send heartbeats without their subscriptions."""

    async def test() -> None:
        async with group_server() as (served, *_):
            (one,) = await served.connected()
            assert (await answered(one, RequestCode.HEART_BEAT, body=heartbeat())).fields == {}

    run(test)


def test_a_client_that_leaves_is_removed_and_the_others_get_a_notice() -> None:
    async def test() -> None:
        async with group_server() as (served, _, _, gone):
            one, two = await served.connected(2)
            await answered(one, RequestCode.HEART_BEAT, body=heartbeat("a"))
            await answered(two, RequestCode.HEART_BEAT, body=heartbeat("b"))
            fields = {"clientID": "b", "consumerGroup": "g", "producerGroup": "p"}
            assert (await answered(two, RequestCode.UNREGISTER_CLIENT, fields)).code == 0
            assert await members(one) == ["a"]
            assert gone == [("b", "g")]
            notice = await one.receive()
            assert (notice.code, notice.fields) == (40, {"consumerGroup": "g"})
            unknown = {"clientID": "x", "consumerGroup": "unknown"}
            assert (await answered(two, RequestCode.UNREGISTER_CLIENT, unknown)).code == 0
            assert (await answered(two, RequestCode.UNREGISTER_CLIENT, {"clientID": "x"})).code == 0
            assert (await answered(two, RequestCode.UNREGISTER_CLIENT, {})).code == 1

    run(test)


def test_silent_members_are_removed() -> None:
    async def test() -> None:
        async with group_server() as (served, _, requests, gone):
            (one,) = await served.connected()
            await answered(one, RequestCode.HEART_BEAT, body=heartbeat("a"))
            requests.expire()
            assert gone == []
            asyncio.get_running_loop().ahead_s += 121  # type: ignore[attr-defined]
            requests.expire()
            assert gone == [("a", None)]

    run(test)


@pytest.mark.parametrize(
    ("bodies", "says"),
    [
        ([heartbeat("a", *"ghijk"), heartbeat("a", "l")], "no room"),
        ([heartbeat("a", *"ghijkl")], "no room"),
        ([heartbeat(one) for one in "abcdef"], "no room"),
        ([heartbeat(topics=tuple("uvwxyz"))], "6 topics"),
        ([heartbeat(topics=tuple("uvw"), pulls=True), heartbeat(topics=tuple("xyz"), pulls=True)], "6 topics"),
        ([heartbeat("a" * 256)], "clientID"),
        ([heartbeat("a", "g" * 256)], "groupName"),
        ([heartbeat(topics=("t" * 256,))], "topic"),
        ([heartbeat().replace(b'"*"', b'"%s"' % (b"x" * 32_768))], "subString"),
        ([b"["], "body"),
        ([b"{}"], "clientID"),
    ],
    ids=["groups", "groups at once", "members", "topics", "topics of a pull consumer", "client id", "group", "topic",
         "expression", "no JSON", "no client id"],
)  # fmt: skip
def test_a_heartbeat_above_a_limit_is_refused_whole(bodies: list[bytes], says: str) -> None:
    """SYSTEM_BUSY or SYSTEM_ERROR; the heartbeats before it stay valid."""

    async def test() -> None:
        async with group_server() as (served, groups, *_):
            (one,) = await served.connected()
            for body in bodies[:-1]:
                assert (await answered(one, RequestCode.HEART_BEAT, body=body)).code == 0
            before = groups.saved()
            answer = await answered(one, RequestCode.HEART_BEAT, body=bodies[-1])
            assert answer.code in (1, 2)
            assert says in answer.remark
            assert groups.saved() == before

    run(test)


def test_rights_of_groups_and_topics_are_required(tmp_path: Path) -> None:
    """Sub on the group and on each topic; the retry topic belongs to the group."""
    files = AccessFolder(tmp_path)
    tokens = {name: files.principal(name) for name in ("both", "group", "topic")}
    for name in ("both", "group"):
        files.rule(name, ["Sub"], "Group:g")
    for name in ("both", "topic"):
        files.rule(name, ["Sub"], "Topic:t")
    access = ReloadedFiles(AccessFile(files.path), every_ms=10_000, on_reload=lambda _: None)

    async def test() -> None:
        async with group_server(Guard(access, RateLimits(), None)) as (served, groups, *_):
            (one,) = await served.connected()
            body = heartbeat(topics=("t", "%RETRY%g"))
            for name, token in tokens.items():
                shown = {"SecurityToken": token}
                code = (await answered(one, RequestCode.HEART_BEAT, shown, body)).code
                assert code == (0 if name == "both" else ResponseCode.NO_PERMISSION), name
                asked = {**shown, "consumerGroup": "g", "clientID": "z"}
                allowed = 0 if name != "topic" else ResponseCode.NO_PERMISSION
                assert (await answered(one, RequestCode.GET_CONSUMER_LIST_BY_GROUP, asked)).code == allowed
                assert (await answered(one, RequestCode.UNREGISTER_CLIENT, asked)).code == allowed
            assert groups.listed("g") == ["a"]

    run(test)
