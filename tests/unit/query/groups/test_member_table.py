"""Sessions, generations and limits of all groups, with a clock that the test moves."""

from __future__ import annotations

import orjson
import pytest

from services.indexer.query.groups.group_membership import MemberLease
from services.indexer.query.groups.member_table import MemberTable
from services.indexer.query.queue_allocation import Queue, Strategy
from tidemark.errors import (
    GenerationStaleError,
    GroupActiveError,
    GroupFullError,
    GroupStrategyConflictError,
    MemberFencedError,
)

TWO = {"orders": (0, 1)}
BOTH = {Queue("orders", 0), Queue("orders", 1)}
EPOCH_MS = 1_795_240_000_000


class Clock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Table(MemberTable):
    """MemberTable with defaults for irrelevant arguments."""

    def __init__(self, clock: Clock, *, max_groups: int = 10, max_members: int = 10) -> None:
        super().__init__(
            "tidemark-0", max_groups=max_groups, max_members=max_members, clock=clock, epoch_ms=lambda: EPOCH_MS
        )

    def take(
        self, member_id: str, group: str = "billing", strategy: Strategy = Strategy.AVERAGELY, timeout_ms: int = 1000
    ) -> MemberLease:
        return self.join(group, member_id, ["orders"], strategy=strategy, session_timeout_ms=timeout_ms, queue_ids=TWO)

    def beat(self, member_id: str, generation: int, holds: set[Queue] | None = None) -> MemberLease:
        return self.heartbeat("billing", member_id, generation=generation, holds=holds or set(), queue_ids=TWO)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def leases(clock: Clock) -> Table:
    return Table(clock)


def test_a_member_without_a_heartbeat_is_removed(leases: Table, clock: Clock) -> None:
    """At the end of its session, the other member gets its queues in a new generation and the late member is fenced."""
    late = leases.take("a")
    other = leases.take("b", timeout_ms=5000)
    clock.now_s += 1.0
    told = leases.beat("b", other.generation)
    assert (set(told.assigned), told.members, told.generation) == (BOTH, ["b"], other.generation + 1)
    with pytest.raises(MemberFencedError):
        leases.beat("a", late.generation, BOTH)


def test_heartbeats_keep_a_member_alive(leases: Table, clock: Clock) -> None:
    """The total duration does not matter."""
    lease = leases.take("a")
    for _ in range(10):
        clock.now_s += 0.999
        lease = leases.beat("a", lease.generation, BOTH)
    assert set(lease.assigned) == BOTH


def test_the_timer_removes_expired_members(leases: Table, clock: Clock) -> None:
    """No request of the group is needed."""
    leases.take("a")
    clock.now_s += 1.0
    before = leases.rebalances
    leases.expire()
    assert leases.rebalances == before + 1
    assert (leases.state("billing"), leases.states(), leases.generation("billing")) == (None, {}, None)


def test_generations_only_increase(leases: Table) -> None:
    """They rise even when all members have left and a new group begins."""
    first = leases.take("a").generation
    leases.leave("billing", "a")
    second = leases.take("a").generation
    leases.leave("billing", "a")
    assert EPOCH_MS < first < second < leases.take("a", group="audit").generation


def test_a_late_commit_is_refused_and_counted(leases: Table, clock: Clock) -> None:
    """It is refused from the moment when the session ends; the facts include the current generation."""
    lease = leases.take("a")
    with leases.as_holder("billing", "a", generation=lease.generation, queues=BOTH):
        pass
    leases.take("b", timeout_ms=5000)
    clock.now_s += 1.0
    with (
        pytest.raises(GenerationStaleError) as stale,
        leases.as_holder("billing", "a", generation=lease.generation, queues=BOTH),
    ):
        pass
    assert stale.value.facts["generation"] == leases.generation("billing") == lease.generation + 2
    assert leases.fenced_commits == 1


def test_a_commit_to_a_group_without_members_is_refused(leases: Table) -> None:
    """A group without members has no generation to commit with."""
    with pytest.raises(GenerationStaleError), leases.as_holder("billing", "a", generation=EPOCH_MS, queues=BOTH):
        pass


def test_a_reset_is_refused_while_a_session_is_alive(leases: Table, clock: Clock) -> None:
    """The reset is refused while a session lasts, and granted at its end."""
    leases.take("a")
    with pytest.raises(GroupActiveError), leases.without_members("billing"):
        pass
    clock.now_s += 1.0
    with leases.without_members("billing"):
        pass


def test_a_join_with_another_strategy_is_refused(leases: Table) -> None:
    """Another strategy is refused while other members live; a single member may return with it."""
    leases.take("a")
    with pytest.raises(GroupStrategyConflictError):
        leases.take("b", strategy=Strategy.CONSISTENT_HASH)
    leases.take("a", strategy=Strategy.CONSISTENT_HASH)
    state = leases.state("billing")
    assert state is not None
    assert state.strategy is Strategy.CONSISTENT_HASH


def test_members_and_groups_above_the_limits_are_refused(clock: Clock) -> None:
    """Members and groups are limited; a returning member needs no new place, and a freed place can be used."""
    leases = Table(clock, max_groups=2, max_members=2)
    leases.take("a")
    leases.take("b")
    with pytest.raises(GroupFullError):
        leases.take("c")
    leases.take("a")
    leases.take("a", group="audit")
    with pytest.raises(GroupFullError):
        leases.take("a", group="third")
    assert list(leases.states()) == ["audit", "billing"]
    leases.leave("audit", "a")
    leases.take("a", group="third")


def test_a_leave_by_an_unknown_or_replaced_member_changes_nothing(leases: Table) -> None:
    """An unknown member is no error; a replaced incarnation does not remove its successor."""
    leases.leave("billing", "a")
    old = leases.take("a").generation
    new = leases.take("a").generation
    leases.leave("billing", "a", old)
    assert leases.generation("billing") == new
    leases.leave("billing", "a", new)
    assert leases.generation("billing") is None


def test_the_group_state_lists_its_members(leases: Table, clock: Clock) -> None:
    leases.take("b", timeout_ms=5000)
    leases.take("a", timeout_ms=4000)
    clock.now_s += 0.5
    state = leases.state("billing")
    assert state is not None
    a, b = state.members
    assert (a.member_id, a.session_timeout_ms, a.heartbeat_age_ms, a.holds) == ("a", 4000, 500, [])
    assert (b.member_id, set(b.holds), b.topics) == ("b", BOTH, ["orders"])
    assert leases.topics("billing") == state.topics == {"orders"}


def test_a_new_table_continues_from_the_saved_one(leases: Table, clock: Clock) -> None:
    """The JSON keeps holders, known generations and shares; sessions begin anew."""
    first = leases.take("a", timeout_ms=1000)
    leases.take("b", timeout_ms=2000)
    generation = leases.beat("a", first.generation, {Queue("orders", 0)}).generation
    shared = leases.beat("b", generation)
    assert shared.assigned == [Queue("orders", 1)]
    leases.take("gone", group="other", timeout_ms=10)
    clock.now_s += 0.9
    left = orjson.loads(orjson.dumps(leases.to_json()))
    assert left.keys() == {"billing"}  # the other session is over
    after = Table(clock)
    after.take_over(left)
    state, before = after.state("billing"), leases.state("billing")
    assert state is not None
    assert before is not None
    assert (state.generation, state.strategy) == (before.generation, before.strategy)
    assert [member.holds for member in state.members] == [member.holds for member in before.members]
    assert [member.heartbeat_age_ms for member in state.members] == [0, 0]
    assert after.beat("b", generation, {Queue("orders", 1)}) == shared._replace(has_new=False)
    with after.as_holder("billing", "b", generation=generation, queues={Queue("orders", 1)}):
        pass
    with (
        pytest.raises(GenerationStaleError),
        after.as_holder("billing", "b", generation=generation, queues={Queue("orders", 0)}),
    ):
        pass
    clock.now_s += 1.5
    assert after.take("c").members == ["b", "c"]  # "a" sent no heartbeat


@pytest.mark.parametrize("left", [{"g": 1}, {"g": {}}, {"g": {"strategy": "none", "generation": 1}}], ids=str)
def test_an_invalid_saved_table_is_refused(leases: Table, left: dict[str, object]) -> None:
    """No part of it is used."""
    with pytest.raises((KeyError, TypeError, ValueError)):
        leases.take_over(left)
    assert leases.states() == {}
