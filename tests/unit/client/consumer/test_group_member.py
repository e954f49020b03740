from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from tests.unit.client.received_messages import ORDERS
from tests.waiting import until
from tidemark.client.consumer.group_member import GroupMember
from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.query import Query
from tidemark.errors import (
    ForbiddenError,
    GenerationStaleError,
    MemberFencedError,
    QueryUnreachableError,
    StoreError,
)

OTHER = TopicQueue("orders", 1)
MEMBERS, OFFSETS = "/v1/groups/a%2Fb/members", "/v1/groups/a%2Fb/offsets"


def queue_of(one: dict[str, Any]) -> TopicQueue:
    return TopicQueue(one["topic"], one["queue_id"])


class Coordinator:
    """The service's side of one group: the queues that it assigns, and all that its member asked for."""

    def __init__(self) -> None:
        self.assigned: dict[TopicQueue, int | None] = {ORDERS: 7, OTHER: None}
        self.generation = 1
        self.error: StoreError | None = None
        self.joins: list[dict[str, Any]] = []
        self.holds: list[set[TopicQueue]] = []  # of each heartbeat
        self.commits: list[dict[str, Any]] = []
        self.left: list[str] = []

    def _answer(self) -> dict[str, Any]:
        assigned = [{**queue._asdict(), "offset": offset} for queue, offset in self.assigned.items()]
        return {"generation": self.generation, "assigned": assigned}

    def _raise(self) -> None:
        error = self.error
        if isinstance(error, MemberFencedError):
            self.error = None
        if error is not None:
            raise error

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert path == MEMBERS
        self._raise()
        self.joins.append(dict(body))
        return {**self._answer(), "member_id": f"m{len(self.joins)}", "heartbeat_interval_ms": 2}

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path == OFFSETS:
            self.commits.append(body)
            return {}
        assert path == f"{MEMBERS}/m{len(self.joins)}"
        self._raise()
        self.holds.append({queue_of(one) for one in body["holds"]})
        return self._answer()

    def delete(self, path: str) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        self.left.append(path)
        return {}

    def wait_for_heartbeats(self, count: int = 2) -> None:
        """Wait for heartbeats that began after the call."""
        before = len(self.holds)
        until(lambda: len(self.holds) >= before + count)


class Member(GroupMember):
    """A member of the group a/b that records its calls of on_change."""

    def __init__(self, coordinator: Coordinator, *, max_poll_interval_s: float = 600.0) -> None:
        self.changed = threading.Event()
        super().__init__(
            cast(Query, coordinator),
            "a/b",
            ["orders", "orders"],
            strategy="averagely",
            session_timeout_ms=10_000,
            max_poll_interval_s=max_poll_interval_s,
            on_change=self.changed.set,
        )


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def member(coordinator: Coordinator) -> Iterator[Member]:
    made = Member(coordinator)
    made.start()
    yield made
    made.close()


def test_a_member_joins_with_its_topics_and_reads_its_share(coordinator: Coordinator, member: Member) -> None:
    (joined,) = coordinator.joins
    assert (joined["topics"], joined["strategy"], joined["session_timeout_ms"]) == (["orders"], "averagely", 10_000)
    assert member.assignment().offsets == {ORDERS: 7, OTHER: None}


def test_a_refusal_to_join_is_raised_by_the_start(coordinator: Coordinator) -> None:
    coordinator.error = ForbiddenError("not this group")
    with pytest.raises(ForbiddenError):
        Member(coordinator).start()


def test_a_lost_queue_is_held_until_it_is_released(coordinator: Coordinator, member: Member) -> None:
    """Another member must not read it before this one has committed."""
    member.assignment()
    coordinator.assigned = {ORDERS: 7}
    until(lambda: member.assignment().queues == {ORDERS})
    coordinator.wait_for_heartbeats()
    assert coordinator.holds[-1] == {ORDERS, OTHER}
    member.release(frozenset({OTHER}))
    coordinator.wait_for_heartbeats()
    assert coordinator.holds[-1] == {ORDERS}


def test_an_assigned_queue_that_was_never_read_is_not_held(coordinator: Coordinator, member: Member) -> None:
    coordinator.assigned = {ORDERS: 7}
    coordinator.wait_for_heartbeats()
    assert coordinator.holds[-1] == {ORDERS}


def test_heartbeats_without_a_change_keep_the_offsets(coordinator: Coordinator, member: Member) -> None:
    """Offsets on record grow with each commit, and are no change of the assignment."""
    before = member.assignment()
    coordinator.assigned[ORDERS] = 99
    coordinator.wait_for_heartbeats()
    assert member.assignment().offsets is before.offsets


def test_a_commit_carries_the_generation_of_the_last_heartbeat(coordinator: Coordinator, member: Member) -> None:
    member.assignment()
    coordinator.generation = 5
    coordinator.wait_for_heartbeats()
    member.commit({ORDERS: 8})
    offsets = [{"topic": "orders", "queue_id": 0, "offset": 8}]
    assert coordinator.commits == [{"member_id": "m1", "generation": 5, "offsets": offsets}]


def test_a_fenced_member_rejoins_and_cannot_commit_earlier_messages(coordinator: Coordinator, member: Member) -> None:
    """Another member may have received them meanwhile."""
    before = member.assignment()
    coordinator.error = MemberFencedError("silent for too long")
    until(lambda: member.member_id == "m2")
    with pytest.raises(GenerationStaleError):
        member.commit({ORDERS: 8})
    assert member.assignment().incarnation > before.incarnation
    member.commit({ORDERS: 8})
    assert coordinator.commits[0]["member_id"] == "m2"


def test_a_refused_heartbeat_is_raised_by_the_next_assignment_call(coordinator: Coordinator, member: Member) -> None:
    coordinator.error = ForbiddenError("not any more")
    with pytest.raises(ForbiddenError):
        until(lambda: member.assignment().queues == frozenset())
    coordinator.error = None


def test_an_unreachable_service_leaves_the_assignment_unchanged(coordinator: Coordinator, member: Member) -> None:
    before = member.assignment()
    coordinator.error = QueryUnreachableError("restarting")
    assert member.changed.wait(30)
    assert member.assignment() is before
    coordinator.error = None
    coordinator.wait_for_heartbeats()
    assert member.member_id == "m1"


def test_a_member_that_does_not_poll_leaves_and_joins_again_when_it_does(coordinator: Coordinator) -> None:
    member = Member(coordinator, max_poll_interval_s=0.0)
    member.start()
    until(lambda: coordinator.left)
    assert member.assignment().queues == frozenset()
    member._max_poll_interval_s = 600.0
    member.assignment()
    until(lambda: member.assignment().queues == {ORDERS, OTHER})
    member.close()


def test_a_closed_member_leaves_with_its_generation(coordinator: Coordinator) -> None:
    """A member that joined later under the same id has another generation, and stays."""
    coordinator.generation = 3
    member = Member(coordinator)
    member.start()
    member.close()
    assert coordinator.left == [f"{MEMBERS}/m1?generation=3"]


def test_closing_without_the_service_is_not_an_error(coordinator: Coordinator) -> None:
    member = Member(coordinator)
    member.start()
    coordinator.error = QueryUnreachableError("away")
    member.close()
    assert member.member_id is None


def test_retry_topics_are_added_before_the_first_poll_only(coordinator: Coordinator) -> None:
    member = Member(coordinator)
    member.add_retry_topics()
    member.start()
    assert "%RETRY%a/b" in coordinator.joins[0]["topics"]
    assert member.topics == ["orders"]
    member.add_retry_topics()
    member.close()
    late = Member(coordinator)
    late.start()
    with pytest.raises(ValueError, match="before the first poll"):
        late.add_retry_topics()
    late.close()
