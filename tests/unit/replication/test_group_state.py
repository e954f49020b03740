from __future__ import annotations

import pytest

from tidemark.replication.group_state import GroupState


def state(in_sync: str, eligible: str = "", *, min_in_sync: int = 2) -> GroupState:
    """Return a state at revision 7 and epoch 3; members have names of one letter."""
    return GroupState(7, 3, "a", frozenset(in_sync), frozenset(eligible), min_in_sync)


def sets(one: GroupState) -> tuple[str, str]:
    return "".join(sorted(one.in_sync)), "".join(sorted(one.eligible))


@pytest.mark.parametrize(
    ("before", "min_in_sync", "expected"),
    [
        (("abc", ""), 2, ("b", "ac")),
        (("a", "b"), 2, ("b", "a")),
        (("ab", ""), 1, ("b", "")),
        (("b", "ac"), 2, ("b", "ac")),
    ],
)
def test_an_election_leaves_the_writer_alone_in_sync(
    before: tuple[str, str], min_in_sync: int, expected: tuple[str, str]
) -> None:
    """The others are eligible if bytes cannot be committed without one of them."""
    after = state(*before, min_in_sync=min_in_sync).elected("b")
    assert (after.epoch, after.writer, after.revision) == (4, "b", 7)
    assert sets(after) == expected


@pytest.mark.parametrize(
    ("before", "min_in_sync", "expected"),
    [
        (("abc", ""), 2, ("ab", "")),
        (("ac", ""), 2, ("a", "c")),
        (("ac", "b"), 3, ("a", "bc")),
        (("ac", ""), 1, ("a", "")),
    ],
)
def test_a_member_that_leaves_is_eligible_if_too_few_remain(
    before: tuple[str, str], min_in_sync: int, expected: tuple[str, str]
) -> None:
    assert sets(state(*before, min_in_sync=min_in_sync).left_by("c")) == expected


@pytest.mark.parametrize(
    ("before", "min_in_sync", "expected"),
    [(("a", "bc"), 2, ("ac", "")), (("a", "bc"), 3, ("ac", "b")), (("ab", ""), 2, ("abc", ""))],
)
def test_members_are_eligible_until_enough_have_joined(
    before: tuple[str, str], min_in_sync: int, expected: tuple[str, str]
) -> None:
    """Later the writer may commit bytes that the others lack."""
    assert sets(state(*before, min_in_sync=min_in_sync).joined_by("c")) == expected


def test_only_members_with_every_committed_byte_can_be_elected() -> None:
    assert [state("a", "b").can_elect(member) for member in "abc"] == [True, True, False]


@pytest.mark.parametrize(("in_sync", "expected"), [("a", False), ("ab", True), ("abc", True)])
def test_bytes_are_committed_with_enough_in_sync(in_sync: str, expected: bool) -> None:
    assert state(in_sync).has_enough is expected
