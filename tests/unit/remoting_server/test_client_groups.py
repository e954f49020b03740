"""ClientGroups: each client id once, the time after a restart, and notices of changes."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.remoting_server.served import advance, run
from tidemark.remoting import Frame, RequestCode
from tidemark.remoting.heartbeats import ConsumerData, ConsumeType, MessageModel, SubscriptionData
from tidemark.remoting_server.client_groups import SETTLE_S, ClientGroups, SavedMembers
from tidemark.remoting_server.connection import Connection


class FakeConnection:
    """The part of a connection that groups use. notices: (time, group) of each notice."""

    def __init__(self) -> None:
        self.client_ids: set[str] = set()
        self.notices: list[tuple[float, str]] = []

    def notify(self, frame: Frame) -> None:
        assert (frame.code, frame.is_one_way) == (RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, True)
        self.notices.append((asyncio.get_running_loop().time(), frame.fields["consumerGroup"]))


def connection() -> Any:
    return cast(Connection, FakeConnection())


def consumer(group: str = "g", *topics: str, version: int = 1, pulls: bool = False) -> ConsumerData:
    kind = ConsumeType.CONSUME_ACTIVELY if pulls else ConsumeType.CONSUME_PASSIVELY
    subscriptions = tuple(SubscriptionData(topic, "*", version) for topic in topics or ("t",))
    return ConsumerData(group, kind, MessageModel.CLUSTERING, "", subscriptions)


def test_a_client_with_two_connections_is_listed_once_and_stays_until_the_last_closes() -> None:
    """Clients divide the queues by the length of the list."""

    async def test() -> None:
        groups = ClientGroups()
        first, second = connection(), connection()
        for one in (first, second):
            groups.heard(one, "a", consumer())
        assert groups.listed("g") == ["a"]
        assert groups.lost(first) == []
        assert groups.listed("g") == ["a"]
        assert groups.lost(second) == ["a"]
        assert groups.listed("g") == []
        assert not groups.exists("g")

    run(test)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["heard", "left", "lost", "expire"]),
        st.integers(0, 3),
        st.sampled_from("abc"),
        st.sampled_from(["g", "h"]),
        st.sampled_from([0.0, 0.2, 0.9, 1.1, 70.0]),
    ),
    max_size=40,
)


class Model:
    """The groups as they must be: connections with the time of the last heartbeat, by group and client."""

    def __init__(self) -> None:
        self.heard: dict[tuple[str, str], dict[int, float]] = {}

    def lost(self, number: int) -> None:
        for places in self.heard.values():
            places.pop(number, None)

    def expire(self, now: float) -> None:
        for places in self.heard.values():
            if places and now - max(places.values()) > 119.9:
                places.clear()

    def members(self, group: str) -> set[str]:
        return {client for (name, client), places in self.heard.items() if name == group and places}


@given(STEPS)
def test_members_and_notices_follow_the_heartbeats(steps: list[tuple[str, int, str, str, float]]) -> None:
    """Each id is listed once; a connection gets at most one notice a second for each group."""

    async def test() -> None:
        groups, model = ClientGroups(), Model()
        connections = [connection() for _ in range(4)]
        for kind, number, client, group, seconds in steps:
            now = asyncio.get_running_loop().time()
            if kind == "heard":
                groups.heard(connections[number], client, consumer(group))
                model.heard.setdefault((group, client), {})[number] = now
            elif kind == "left":
                groups.left(client, group)
                model.heard.pop((group, client), None)
            elif kind == "lost":
                groups.lost(connections[number])
                connections[number].client_ids.clear()
                model.lost(number)
            else:
                groups.expire()
                model.expire(now)
            for name in ("g", "h"):
                assert sorted(groups.listed(name)) == sorted(model.members(name))
            await advance(seconds)
        await advance(2)
        for notices in (one.notices for one in connections):
            for group in ("g", "h"):
                times = [at for at, name in notices if name == group]
                assert all(later - earlier > 0.999 for earlier, later in itertools.pairwise(times))

    run(test)


def test_changes_are_noticed_by_every_member_and_a_repeated_heartbeat_is_none() -> None:
    """Joining, another topic, leaving and a lost connection are changes."""

    async def test() -> None:
        groups = ClientGroups()
        one, two = connection(), connection()
        assert groups.heard(one, "a", consumer())
        await advance(0)
        assert len(one.notices) == 1
        assert not groups.heard(one, "a", consumer())
        await advance(1.1)
        assert len(one.notices) == 1
        assert groups.heard(two, "b", consumer())
        assert groups.heard(two, "b", consumer("g", "t", "u"))
        await advance(1.1)
        assert (len(one.notices), len(two.notices)) == (2, 1)
        groups.left("b", "g")
        await advance(1.1)
        assert (len(one.notices), len(two.notices)) == (3, 1)
        groups.heard(two, "b", consumer())
        await advance(1.1)
        groups.lost(two)
        await advance(1.1)
        assert len(one.notices) == 5

    run(test)


def test_notices_of_a_group_that_becomes_empty_are_limited_too() -> None:
    async def test() -> None:
        groups = ClientGroups()
        one = connection()
        for _ in range(5):
            groups.heard(one, "a", consumer())
            await advance(0.01)
            groups.left("a", "g")
            await advance(0.01)
        assert len(one.notices) == 1

    run(test)


def test_after_a_restart_the_members_of_before_are_listed_with_the_others() -> None:
    """With a part of the list, two members would take the same queues; without a list, Go's client drops its own."""

    async def test() -> None:
        groups = ClientGroups({"g": ["a", "b"], "empty": []})
        assert groups.listed("g") == ["a", "b"]
        groups.heard(connection(), "a", consumer())
        groups.heard(connection(), "c", consumer())
        groups.heard(connection(), "x", consumer("h"))
        assert sorted(groups.listed("g")) == ["a", "b", "c"]
        assert groups.listed("h") == ["x"]
        assert groups.listed("empty") == groups.listed("unknown") == []
        groups.heard(connection(), "b", consumer())
        assert sorted(groups.listed("g")) == ["a", "b", "c"]

    run(test)


def test_after_a_restart_a_member_that_leaves_is_not_listed() -> None:
    async def test() -> None:
        groups = ClientGroups({"g": ["a", "b"]})
        groups.heard(connection(), "a", consumer())
        groups.left("b", "g")
        assert groups.listed("g") == ["a"]

    run(test)


def test_members_of_before_that_do_not_come_back_are_left_out_and_the_others_noticed() -> None:
    """They have the time of a heartbeat."""

    async def test() -> None:
        groups, one = ClientGroups({"g": ["a", "b"]}), connection()
        groups.heard(one, "a", consumer())
        await advance(SETTLE_S - 1)
        assert groups.listed("g") == ["a", "b"]
        before = len(one.notices)
        await advance(1.5)
        assert groups.listed("g") == ["a"]
        await advance(1.5)
        assert len(one.notices) == before + 1

    run(test)


def test_awaited_members_are_saved_for_a_second_restart() -> None:
    """Otherwise the process after the next would give a part of the list."""

    async def test() -> None:
        saved: list[SavedMembers] = []
        groups = ClientGroups(
            {"g": ["a", "b"], "h": ["x"]}, on_change=lambda members: saved.append(members()), settle_s=5
        )
        groups.heard(connection(), "a", consumer())
        assert saved[-1] == {"g": ["a", "b"], "h": ["x"]}
        await advance(6)
        groups.heard(connection(), "c", consumer())
        assert saved[-1] == {"g": ["a", "c"]}

    run(test)


def test_members_are_saved_when_one_joins_or_leaves() -> None:
    async def test() -> None:
        saved: list[SavedMembers] = []
        groups = ClientGroups(on_change=lambda members: saved.append(members()))
        one = connection()
        groups.heard(one, "a", consumer())
        groups.heard(one, "a", consumer())
        groups.heard(one, "a", consumer("h"))
        assert saved == [{"g": ["a"]}, {"g": ["a"], "h": ["a"]}]
        groups.left("a", "g")
        groups.left("a", "g")
        groups.left("nobody", "unknown")
        assert saved[2:] == [{"h": ["a"]}]
        groups.lost(one)
        assert saved[3:] == [{}]

    run(test)


def test_a_silent_client_is_removed() -> None:
    """One of its connections is enough."""

    async def test() -> None:
        groups = ClientGroups()
        one, two = connection(), connection()
        groups.heard(one, "a", consumer())
        groups.heard(one, "b", consumer())
        await advance(100)
        groups.heard(two, "a", consumer())
        await advance(30)
        assert groups.expire() == ["b"]
        assert groups.listed("g") == ["a"]
        await advance(121)
        assert groups.expire() == ["a"]
        assert not groups.exists("g")

    run(test)


def test_a_subscription_is_replaced_by_a_later_version_only() -> None:
    async def test() -> None:
        groups = ClientGroups()
        one = connection()

        def hear(expression: str, version: int) -> None:
            given = consumer()._replace(subscriptions=(SubscriptionData("t", expression, version),))
            groups.heard(one, "a", given)

        def current() -> str:
            found = groups.subscription("g", "t")
            assert found is not None
            return found.expression

        hear("A", 5)
        hear("B", 4)
        assert current() == "A"
        hear("C", 6)
        assert current() == "C"
        assert groups.subscription("g", "other") is None
        assert groups.subscription("other", "t") is None

    run(test)


@pytest.mark.parametrize(("pulls", "kept"), [(False, {"u"}), (True, {"t", "u"})], ids=["push", "pull"])
def test_a_push_consumer_replaces_its_topics_and_a_pull_consumer_adds_to_them(pulls: bool, kept: set[str]) -> None:
    async def test() -> None:
        groups = ClientGroups()
        one = connection()
        groups.heard(one, "a", consumer("g", "t", pulls=pulls))
        later = consumer("g", "u", pulls=pulls)
        assert groups.topics_with(later) == len(kept)
        groups.heard(one, "a", later)
        assert {topic for topic in ("t", "u") if groups.subscription("g", topic)} == kept

    run(test)


def test_room_is_for_known_members_and_up_to_the_limits() -> None:
    async def test() -> None:
        groups = ClientGroups()
        groups.heard(connection(), "a", consumer())
        assert groups.has_room("g", "b", groups=1, members=2)
        assert not groups.has_room("g", "b", groups=1, members=1)
        assert groups.has_room("g", "a", groups=1, members=1)
        assert not groups.has_room("h", "a", groups=1, members=9)
        assert groups.has_room("h", "a", groups=2, members=9)

    run(test)
