"""Queues are allocated as RocketMQ's clients do it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.indexer.query.queue_allocation import (
    Queue,
    Strategy,
    allocate,
    averagely,
    consistent_hash,
    place_of,
)

MEMBERS = st.sets(st.text("abcxyz0189._:@-", min_size=1, max_size=8), min_size=1, max_size=12).map(sorted)
TOPICS = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.sets(st.integers(0, 40), max_size=20))
STRATEGIES = st.sampled_from(Strategy)


def peers_average(count: int, members: Sequence[str], index: int) -> list[int]:
    """Return the queues that AllocateMessageQueueAveragely gives the member at *index*, computed step by step."""
    mod = count % len(members)
    is_longer = mod > 0 and index < mod
    size = 1 if count <= len(members) else count // len(members) + is_longer
    start = index * size if is_longer else index * size + mod
    return [(start + i) % count for i in range(min(size, count - start))]


@given(count=st.integers(1, 60), members=MEMBERS)
def test_averagely_equals_the_rocketmq_strategy(count: int, members: list[str]) -> None:
    """Each member gets exactly the queues that a RocketMQ client would take."""
    owners = averagely(count, members)
    for index, member in enumerate(members):
        assert [i for i, owner in enumerate(owners) if owner == member] == peers_average(count, members, index)


@given(count=st.integers(0, 60), members=MEMBERS)
def test_averagely_is_balanced_within_one_queue(count: int, members: list[str]) -> None:
    """The numbers of queues of two members differ by at most one."""
    owners = averagely(count, members)
    sizes = [owners.count(member) for member in members]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


@given(strategy=STRATEGIES, members=MEMBERS, topics=TOPICS, data=st.data())
def test_each_queue_has_one_owner_that_subscribes_to_it(
    strategy: Strategy, members: list[str], topics: dict[str, set[int]], data: st.DataObject
) -> None:
    """Every queue of a subscribed topic is assigned once, and no other queue."""
    wanted = st.sets(st.sampled_from(["a", "b", "c", "d", "unknown"]), min_size=1)
    subscriptions = {member: data.draw(wanted) for member in members}
    shares = allocate(strategy, subscriptions=subscriptions, queue_ids=topics, store="tidemark-0")
    assert list(shares) == members
    given_out = [queue for queues in shares.values() for queue in queues]
    wanted_by_any = set().union(*subscriptions.values())
    expected = {Queue(topic, i) for topic, ids in topics.items() for i in ids if topic in wanted_by_any}
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == expected
    for member, queues in shares.items():
        assert queues == sorted(queues)
        assert {queue.topic for queue in queues} <= subscriptions[member]


@given(members=MEMBERS, count=st.integers(1, 60), data=st.data())
def test_only_the_queues_of_the_leaving_member_move_on_the_ring(
    members: list[str], count: int, data: st.DataObject
) -> None:
    """With consistent hash, a remaining member keeps every queue."""
    leaver = data.draw(st.sampled_from(members))
    staying = [member for member in members if member != leaver] or ["next"]
    queues = [Queue("orders", i) for i in range(count)]
    before = consistent_hash(queues, members, "tidemark-0")
    after = consistent_hash(queues, staying, "tidemark-0")
    assert all(now == then for then, now in zip(before, after, strict=True) if then != leaver)


def test_a_ring_position_is_the_head_of_the_md5() -> None:
    """RFC 1321, A.5: MD5 ("abc") = 900150983cd24fb0…"""
    assert place_of("abc") == 0x90015098


def test_the_ring_equals_the_rocketmq_ring() -> None:
    """The expectation follows ConsistentHashRouter: virtual nodes `member-0` … `member-9` on a closed ring."""
    members = ["a", "b"]
    nodes = sorted((place_of(f"{member}-{i}"), member) for member in members for i in range(10))
    for number in range(50):
        name = f"MessageQueue [topic=orders, brokerName=broker-a, queueId={number}]"
        behind = [member for place, member in nodes if place >= place_of(name)]
        owner = (behind or [nodes[0][1]])[0]
        assert consistent_hash([Queue("orders", number)], members, "broker-a") == [owner]


@pytest.mark.parametrize("strategy", Strategy)
def test_without_members_or_queues_nothing_is_allocated(strategy: Strategy) -> None:
    """Without members, topics or queues nothing is assigned, and nothing fails."""
    assert allocate(strategy, subscriptions={}, queue_ids={"t": [0]}, store="s") == {}
    assert allocate(strategy, subscriptions={"m": {"t"}}, queue_ids={}, store="s") == {"m": []}
    assert allocate(strategy, subscriptions={"m": {"t"}}, queue_ids={"t": []}, store="s") == {"m": []}
