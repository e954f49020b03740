from __future__ import annotations

from dataclasses import replace

import pytest

from tidemark.errors import StaleEpochError
from tidemark.replication.group_state import GroupState
from tidemark.replication.in_sync_set import InSyncSet

STATE = GroupState(7, 3, "a", frozenset("ab"), frozenset(), 2)


@pytest.fixture
def members() -> InSyncSet:
    """Return the set of writer a with b in sync, both at 100, and c at 60."""
    members = InSyncSet(STATE, "a", committed=50)
    for member, end in (("a", 100), ("b", 100), ("c", 60)):
        members.acknowledge(member, end)
    return members


def seen(members: InSyncSet, revision: int = 8) -> GroupState:
    """Return the pending state as the group store has taken it."""
    assert members.pending is not None
    return replace(members.pending, revision=revision)


def test_bytes_are_committed_that_every_member_in_sync_has_synced(members: InSyncSet) -> None:
    members.acknowledge("a", 130)
    assert members.commit() == 100
    members.acknowledge("b", 120)
    assert members.commit() == 120
    members.acknowledge("b", 110)  # of an earlier stream, late
    assert members.commit() == 120


def test_a_member_without_an_acknowledgement_holds_up_the_commit() -> None:
    members = InSyncSet(STATE, "a", committed=50)
    members.acknowledge("a", 100)
    assert members.commit() == 50


def test_nothing_is_committed_with_too_few_in_sync(members: InSyncSet) -> None:
    members.remove("b")
    members.learn(seen(members))
    members.acknowledge("a", 200)
    assert not members.has_enough
    assert members.commit() == 50


def test_kf27_a_joining_member_is_waited_for_at_once_but_does_not_count(members: InSyncSet) -> None:
    """The controller had a slave in the set before its master waited for it, and elected it without the newest messages
    (rocketmq#5663); here a joining member is waited for before the group's state names it."""
    members.learn(replace(STATE, revision=8, in_sync=frozenset("a"), eligible=frozenset("b")))
    wanted = members.add("c")
    assert wanted is not None
    assert (wanted.revision, wanted.in_sync) == (8, frozenset("ac"))
    assert members.waited_for == frozenset("ac")
    assert not members.has_enough
    members.learn(seen(members, 9))
    assert members.has_enough
    assert members.commit() == 60


def test_a_leaving_member_is_waited_for_until_it_has_left(members: InSyncSet) -> None:
    members.acknowledge("a", 200)
    members.remove("b")
    assert members.waited_for == frozenset("ab")
    assert members.commit() == 100
    members.learn(seen(members))
    assert members.waited_for == frozenset("a")


@pytest.mark.parametrize("revision", [6, 7])
def test_an_answer_that_is_not_newer_does_not_end_a_change(members: InSyncSet, revision: int) -> None:
    """The request may still be under way."""
    members.remove("b")
    members.learn(replace(STATE, revision=revision, in_sync=frozenset("abc")))
    assert (members.known, members.pending) == (STATE, STATE.left_by("b"))


def test_there_is_one_change_at_a_time(members: InSyncSet) -> None:
    assert members.add("c") is not None
    assert members.remove("b") is None
    assert members.add("d") is None


@pytest.mark.parametrize("member", ["a", "c"])
def test_only_another_member_in_sync_can_leave(members: InSyncSet, member: str) -> None:
    assert members.remove(member) is None
    assert members.pending is None


@pytest.mark.parametrize(("end", "epoch_start", "expected"), [(99, 0, False), (100, 0, True), (100, 101, False)])
def test_a_member_may_join_with_every_committed_byte_and_the_begin_of_the_epoch(
    members: InSyncSet, end: int, epoch_start: int, expected: bool
) -> None:
    members.commit()
    members.acknowledge("c", end)
    assert members.may_join("c", epoch_start=epoch_start) is expected
    assert not members.may_join("b", epoch_start=0)


def test_a_later_epoch_ends_the_writer(members: InSyncSet) -> None:
    with pytest.raises(StaleEpochError) as raised:
        members.learn(replace(STATE, revision=8, epoch=4))
    assert raised.value.facts == {"epoch": 3, "newer_epoch": 4}
