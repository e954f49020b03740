"""Members of a group share queues, over real HTTP."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable

import httpx
import pytest

from tests.integration.conftest import QUEUES, Served
from tests.integration.consumer.test_consumer import take
from tidemark.client import Consumer, TopicQueue
from tidemark.errors import GenerationStaleError

ALL = frozenset(TopicQueue("orders", queue_id) for queue_id in range(QUEUES))


def member(served: Served, **settings: object) -> Consumer:
    given = {"group": "billing", "url": served.url, "session_timeout_s": 1.5, **settings}
    return Consumer("orders", **given)  # type: ignore[arg-type]


def settle(*members: Consumer, until: Callable[[], bool], timeout_s: float = 10) -> None:
    """Let all members poll until the condition holds."""
    deadline = time.monotonic() + timeout_s
    while not until():
        assert time.monotonic() < deadline, [consumer.assignment for consumer in members]
        for consumer in members:
            consumer.poll(0.05, max_messages=0)


def fill(served: Served, each: int) -> list[bytes]:
    bodies = []
    for queue_id in range(QUEUES):
        own = [b"%d-%d" % (queue_id, i) for i in range(each)]
        served.put(*own, queue_id=queue_id)
        bodies += own
    return bodies


def test_a_single_member_has_all_queues(served: Served) -> None:
    """It reads everything once."""
    bodies = fill(served, 5)
    with member(served) as consumer:
        assert Counter(message.body for message in take(consumer, len(bodies))) == Counter(bodies)
        assert consumer.assignment == ALL


def test_committed_messages_are_not_read_again(served: Served) -> None:
    """The next member starts at the group's committed offset."""
    bodies = fill(served, 5)
    with member(served, auto_commit=False) as consumer:
        first = take(consumer, 8)
        consumer.commit()
        take(consumer, 3)  # not committed
    with member(served) as consumer:
        second = take(consumer, len(bodies) - 8)
        assert consumer.poll(0.3) == []
    assert Counter(message.body for message in first + second) == Counter(bodies)


def test_closing_commits_the_handed_out_messages(served: Served) -> None:
    """This needs auto_commit, and no exception."""
    bodies = fill(served, 3)
    with member(served) as consumer:
        first = take(consumer, 4)
    with contextlib.suppress(RuntimeError), member(served) as consumer:
        take(consumer, 4)
        raise RuntimeError("the handler failed")
    with member(served) as consumer:
        again = take(consumer, len(bodies) - 4)
    assert Counter(message.body for message in first + again) == Counter(bodies)


def test_members_share_and_hand_over_queues_without_duplicates(served: Served) -> None:
    """A joining member gets its share after the other one has committed and released it."""
    bodies = fill(served, 20)
    with member(served) as one:
        got = take(one, 10)
        with member(served) as two:
            settle(one, two, until=lambda: len(one.assignment) == len(two.assignment) == QUEUES // 2)
            assert one.assignment | two.assignment == ALL
            deadline = time.monotonic() + 10
            while len(got) < len(bodies) and time.monotonic() < deadline:
                got += one.poll(0.05, max_messages=3)
                got += two.poll(0.05, max_messages=3)
    assert Counter(message.body for message in got) == Counter(bodies)


def test_a_leaving_member_releases_its_queues_immediately(served: Served) -> None:
    """The session's end is not awaited."""
    with member(served, session_timeout_s=15) as one:
        two = member(served, session_timeout_s=15)
        settle(one, two, until=lambda: len(one.assignment) == len(two.assignment) == QUEUES // 2, timeout_s=60)
        two.close()
        began = time.monotonic()
        settle(one, until=lambda: one.assignment == ALL, timeout_s=12)
        assert time.monotonic() - began < 12


def test_a_silent_member_is_replaced_and_fenced(served: Served) -> None:
    """Its late commit changes nothing; then it joins again."""
    fill(served, 5)
    silent = member(served, auto_commit=False, max_poll_interval_s=0.2)
    with silent:
        take(silent, 6)
        assert silent.assignment == ALL
        time.sleep(1)  # it does not poll, so its session ends
        with member(served) as other:
            settle(other, until=lambda: other.assignment == ALL)
            take(other, 10)
            with pytest.raises(GenerationStaleError):
                silent.commit({TopicQueue("orders", 0): 1})
            settle(silent, other, until=lambda: bool(silent.assignment) and silent.assignment != ALL)
            assert silent.assignment | other.assignment == ALL


def test_a_rejoined_member_cannot_commit_earlier_messages(served: Served) -> None:
    """This holds even if it is a member again with the same queue: another one may have read further meanwhile."""
    fill(served, 5)
    group = f"{served.url}/v1/groups/billing"
    with member(served, auto_commit=False) as consumer:
        take(consumer, 6)
        before = httpx.get(group).json()
        (member_id,) = [one["member_id"] for one in before["members"]]
        httpx.delete(f"{group}/members/{member_id}").raise_for_status()
        deadline = time.monotonic() + 10
        while (now := httpx.get(group)).status_code == 404 or now.json()["generation"] <= before["generation"]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with pytest.raises(GenerationStaleError):
            consumer.commit()
        assert len(take(consumer, QUEUES * 5)) == QUEUES * 5
        consumer.commit()


def test_a_revoked_queue_can_still_be_committed(served: Served) -> None:
    """`on_revoked` is called before the queue is released."""
    fill(served, 5)
    committed: list[frozenset[TopicQueue]] = []

    def revoked(consumer: Consumer, queues: frozenset[TopicQueue]) -> None:
        consumer.commit()
        committed.append(queues)

    with member(served, auto_commit=False, on_revoked=revoked) as one:
        take(one, QUEUES * 5)
        with member(served) as two:
            settle(one, two, until=lambda: len(two.assignment) == QUEUES // 2)
            assert committed == [two.assignment]
            assert two.poll(0.3) == []


def test_on_assigned_can_seek_to_own_offsets(served: Served) -> None:
    """A consumer that stores its own offsets seeks to them in `on_assigned`."""
    fill(served, 5)

    def assigned(consumer: Consumer, queues: frozenset[TopicQueue]) -> None:
        for queue in queues:
            consumer.seek(queue, 4)

    with member(served, on_assigned=assigned) as consumer:
        assert sorted(message.body for message in take(consumer, QUEUES)) == [b"%d-4" % q for q in range(QUEUES)]


def test_named_queues_can_commit_to_a_group_without_members(served: Served) -> None:
    """A consumer with explicit queues and a group stores offsets without sharing queues."""
    served.put(*(b"%d" % i for i in range(4)))
    queue = TopicQueue("orders", 0)
    with Consumer(queues=[queue], group="audit", url=served.url) as consumer:
        take(consumer, 3)
    with Consumer(queues=[queue], group="audit", url=served.url) as consumer:
        assert [message.body for message in take(consumer, 1)] == [b"3"]
    group = httpx.get(f"{served.url}/v1/groups/audit").json()
    assert [(one["topic"], one["queue_id"], one["offset"]) for one in group["queues"]] == [("orders", 0, 4)]


def test_a_newly_added_queue_is_read(served: Served) -> None:
    """Members notice that a topic has grown."""
    with member(served) as consumer:
        settle(consumer, until=lambda: consumer.assignment == ALL)
        served.store.topic("orders", queues=QUEUES + 1)
        served.put(b"new", queue_id=QUEUES)
        assert [message.body for message in take(consumer, 1)] == [b"new"]
