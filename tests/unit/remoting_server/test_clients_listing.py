"""The list of a group's members for its clients after a restart."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from tidemark.remoting import Frame
from tidemark.remoting.heartbeats import ConsumerData, ConsumeType, MessageModel, SubscriptionData
from tidemark.remoting_server.client_groups import ClientGroups, SavedMembers
from tidemark.remoting_server.connection import Connection

SETTLE_S = 0.05
LIMIT_S = 30.0
CONSUMER = ConsumerData(
    "g", ConsumeType.CONSUME_PASSIVELY, MessageModel.CLUSTERING, "", (SubscriptionData("t", "*", 1),)
)


class Ears:
    """The part of a connection that groups use. heard: set with each notice."""

    def __init__(self) -> None:
        self.client_ids: set[str] = set()
        self.heard = asyncio.Event()

    def notify(self, frame: Frame) -> None:
        self.heard.set()


def connection() -> Any:
    return cast(Connection, Ears())


def test_members_of_before_are_listed_until_they_have_had_time_for_a_heartbeat() -> None:
    """Each is listed once. Those that did not come back are then left out, and the others get a notice."""

    async def run() -> None:
        saved: list[SavedMembers] = []
        groups = ClientGroups({"g": ["a", "b"]}, on_change=saved.append, settle_s=SETTLE_S)
        assert groups.listed("g") == ["a", "b"]
        one = connection()
        groups.heard(one, "a", CONSUMER)
        assert groups.listed("g") == ["a", "b"]
        assert saved == [{"g": ["a", "b"]}], "the next start may come sooner than b"
        groups.heard(connection(), "c", CONSUMER)
        assert groups.listed("g") == ["a", "c", "b"]
        while groups.listed("g") != ["a", "c"]:
            one.heard.clear()
            await asyncio.wait_for(one.heard.wait(), LIMIT_S)
        assert saved[-1] == {"g": ["a", "c"]}

    asyncio.run(run())


def test_a_member_of_before_that_leaves_is_not_listed() -> None:
    async def run() -> None:
        groups = ClientGroups({"g": ["a", "b"]})
        groups.left("b", "g")
        assert groups.listed("g") == ["a"]
        assert groups.listed("unknown") == []

    asyncio.run(run())
