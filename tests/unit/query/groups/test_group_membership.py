"""The members of one group: assigned queues, held queues, and the hand-over of queues."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from services.indexer.query.groups.group_membership import GroupMembers, Member, MemberLease
from services.indexer.query.queue_allocation import Queue, Strategy
from tidemark.errors import GenerationStaleError, MemberFencedError

FOUR = {"orders": (0, 1, 2, 3)}


def member(*topics: str) -> Member:
    return Member(frozenset(topics or ("orders",)), session_timeout_ms=1000, heard_s=0.0)


def membership(strategy: Strategy = Strategy.AVERAGELY) -> GroupMembers:
    return GroupMembers(strategy, store="tidemark-0", generation=100)


def ids(lease: MemberLease) -> list[int]:
    return [queue.queue_id for queue in lease.assigned]


def orders(*queue_ids: int) -> set[Queue]:
    return {Queue("orders", queue_id) for queue_id in queue_ids}


def test_a_single_member_gets_all_queues() -> None:
    """It gets every queue of its topics, in a generation above the group's first one."""
    group = membership()
    group.join("a", member(), FOUR)
    lease = group.lease("a")
    assert (lease.generation, lease.members, ids(lease)) == (101, ["a"], [0, 1, 2, 3])
    assert (lease.has_new, group.lease("a").has_new) == (True, False)


def test_a_queue_is_handed_over_after_its_holder_releases_it() -> None:
    """The newcomer waits; the holder is asked to stop, and holds the queue until a heartbeat comes without it."""
    group = membership()
    group.join("a", member(), FOUR)
    first = group.lease("a")
    group.join("b", member(), FOUR)
    assert ids(group.lease("b")) == []
    group.hear("a", generation=first.generation, holds=orders(0, 1, 2, 3), now_s=1.0)
    told = group.lease("a")
    assert ids(told) == [0, 1]
    assert ids(group.lease("b")) == []
    group.require_holder("a", generation=told.generation, queues=orders(2, 3))  # its last commit
    group.hear("a", generation=told.generation, holds=orders(0, 1), now_s=2.0)
    assert ids(group.lease("b")) == [2, 3]
    with pytest.raises(GenerationStaleError):
        group.require_holder("a", generation=told.generation, queues=orders(2))


def test_a_member_cannot_claim_a_queue_by_listing_it_in_holds() -> None:
    """The field `holds` can only release queues."""
    group = membership()
    group.join("a", member(), FOUR)
    group.lease("a")
    group.join("b", member(), FOUR)
    lease = group.lease("b")
    group.hear("b", generation=lease.generation, holds=orders(2, 3), now_s=1.0)
    assert ids(group.lease("b")) == []
    with pytest.raises(GenerationStaleError):
        group.require_holder("b", generation=lease.generation, queues=orders(2))


def test_a_member_gets_its_queues_again_after_a_lost_answer() -> None:
    """A member that did not receive its queues gets them again."""
    group = membership()
    group.join("a", member(), FOUR)
    first = group.lease("a")
    group.learn({"orders": (0, 1, 2, 3, 4)})
    group.lease("a")  # the answer is lost
    group.hear("a", generation=first.generation, holds=orders(0, 1, 2, 3), now_s=1.0)
    assert ids(group.lease("a")) == [0, 1, 2, 3, 4]


def test_a_second_join_with_the_same_id_replaces_the_live_member() -> None:
    """The older incarnation can neither commit nor renew its session, and holds nothing."""
    group = membership()
    group.join("a", member(), FOUR)
    old = group.lease("a")
    group.join("a", member(), FOUR)
    new = group.lease("a")
    assert ids(new) == [0, 1, 2, 3]
    with pytest.raises(GenerationStaleError) as stale:
        group.require_holder("a", generation=old.generation, queues=orders(0))
    assert stale.value.facts["generation"] == new.generation
    with pytest.raises(MemberFencedError):
        group.hear("a", generation=old.generation, holds=orders(0), now_s=1.0)
    group.require_holder("a", generation=new.generation, queues=orders(0))


def test_a_generation_that_was_never_issued_is_refused() -> None:
    group = membership()
    group.join("a", member(), FOUR)
    group.lease("a")
    with pytest.raises(MemberFencedError):
        group.hear("a", generation=group.generation + 1, holds=(), now_s=1.0)


def test_a_commit_needs_the_last_generation_sent_to_the_member() -> None:
    """A newer generation of the group does not matter until the member has received it."""
    group = membership()
    group.join("a", member(), FOUR)
    old = group.lease("a").generation
    group.join("b", member(), FOUR)
    group.require_holder("a", generation=old, queues=orders(0, 1, 2, 3))
    new = group.lease("a").generation
    with pytest.raises(GenerationStaleError):
        group.require_holder("a", generation=old, queues=orders(0))
    group.require_holder("a", generation=new, queues=orders(0))


def test_a_leaving_member_releases_its_queues() -> None:
    group = membership()
    group.join("a", member(), FOUR)
    group.lease("a")
    group.join("b", member(), FOUR)
    before = group.generation
    group.remove(["a"])
    assert group.generation == before + 1
    assert ids(group.lease("b")) == [0, 1, 2, 3]


def test_a_session_expires_at_its_timeout() -> None:
    """A session ends at its length after the last heartbeat, not before."""
    group = membership()
    group.join("a", member(), FOUR)
    lease = group.lease("a")
    assert (group.expired(0.999), group.expired(1.0)) == ([], ["a"])
    group.hear("a", generation=lease.generation, holds=(), now_s=0.5)
    assert (group.expired(1.25), group.expired(1.5)) == ([], ["a"])


def test_new_topics_and_queues_start_a_generation() -> None:
    """An unknown topic has no owner; an unchanged second look makes no new generation."""
    group = membership()
    group.join("a", member("orders", "later"), {"orders": (0,), "later": None})
    lease = group.lease("a")
    assert (ids(lease), lease.unknown_topics) == ([0], ["later"])
    group.learn({"orders": (0, 1), "later": (0,), "other": (5,)})
    lease = group.lease("a")
    assert lease.assigned == [Queue("later", 0), Queue("orders", 0), Queue("orders", 1)]
    assert (lease.unknown_topics, lease.generation) == ([], 102)
    group.learn({"orders": (0, 1), "later": (0,)})
    assert group.generation == 102


def test_a_deleted_topic_is_reported_as_unknown() -> None:
    """Its queues are no longer assigned, and it is reported as unknown."""
    group = membership()
    group.join("a", member(), FOUR)
    group.lease("a")
    group.learn({"orders": None})
    lease = group.lease("a")
    assert (lease.assigned, lease.unknown_topics) == ([], ["orders"])


class Handover(RuleBasedStateMachine):
    """Members join, leave, lose answers and release queues late, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.group = membership(Strategy.CONSISTENT_HASH)
        self.consumed: dict[str, set[Queue]] = {}
        self.told: dict[str, int] = {}
        self.queues = 0

    def tell(self, member_id: str) -> None:
        lease = self.group.lease(member_id)
        self.told[member_id] = lease.generation
        self.consumed[member_id] = set(lease.assigned)

    @rule(member_id=st.sampled_from("abcd"))
    def join(self, member_id: str) -> None:
        self.consumed.pop(member_id, None)
        self.queues = 8
        self.group.join(member_id, member(), {"orders": tuple(range(8))})
        self.tell(member_id)

    @rule(member_id=st.sampled_from("abcd"), is_lost=st.booleans())
    def heartbeat(self, member_id: str, *, is_lost: bool) -> None:
        if member_id not in self.consumed:
            return
        self.group.hear(member_id, generation=self.told[member_id], holds=self.consumed[member_id], now_s=0.0)
        if is_lost:
            self.group.lease(member_id)
        else:
            self.tell(member_id)

    @rule(member_id=st.sampled_from("abcd"))
    def leave(self, member_id: str) -> None:
        if self.consumed.pop(member_id, None) is not None:
            self.group.remove([member_id])

    @rule(queues=st.integers(1, 8))
    def queues_change(self, queues: int) -> None:
        self.queues = queues
        self.group.learn({"orders": tuple(range(queues))})

    @invariant()
    def no_queue_is_consumed_by_two(self) -> None:
        everything = [queue for queues in self.consumed.values() for queue in queues]
        assert len(everything) == len(set(everything))

    @invariant()
    def whoever_consumes_may_commit(self) -> None:
        for member_id, queues in self.consumed.items():
            assert queues <= self.group.members[member_id].holds

    def teardown(self) -> None:
        """Without further changes, three rounds of heartbeats assign every queue: notice, release, assignment."""
        for _ in range(3):
            for member_id in self.consumed:
                self.heartbeat(member_id, is_lost=False)
        if self.consumed:
            assert set().union(*self.consumed.values()) == orders(*range(self.queues))


TestHandover = Handover.TestCase
TestHandover.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
