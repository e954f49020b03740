from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from services.writer.replication.candidacy import Candidacy, NotElectable
from tidemark.replication.group_state import GroupState
from tidemark.replication.known_state import KnownState
from tidemark.replication.member_files import MemberFiles
from tidemark.replication.stored_state import encode_state
from tidemark.store.storage import DiskStorage

from .answers import REPLICA, WRITER, Answer, Follower, state

A, C = Answer("a", REPLICA, identity="a.aaaa"), Answer("c", REPLICA, identity="c.cccc")


@pytest.fixture
def known(tmp_path: Path) -> KnownState:
    return KnownState(MemberFiles(tmp_path, DiskStorage()))


@pytest.fixture
def candidacy(known: KnownState) -> Candidacy:
    """That of member b."""
    return Candidacy("b.bbbb", known, others=2)


def reason(found: GroupState | NotElectable) -> str:
    return found.reason if isinstance(found, NotElectable) else ""


def test_a_member_in_sync_or_eligible_stands(candidacy: Candidacy) -> None:
    assert candidacy.state_to_replace(state(4, "ab"), [], Follower()) == state(4, "ab")
    assert candidacy.state_to_replace(state(4, "a", eligible="b"), [], Follower()) == state(4, "a", eligible="b")


def test_a_member_that_may_lack_messages_does_not_stand(candidacy: Candidacy) -> None:
    found = candidacy.state_to_replace(state(4, "ac"), [A, C], Follower(log_end=1_000))
    assert found == NotElectable("not_electable", {"epoch": 65_536, "electable": ["a", "c"]})


def test_no_member_stands_that_knows_more_than_the_group_store(candidacy: Candidacy, known: KnownState) -> None:
    stored = state(4, "ab")
    later = replace(A, state=encode_state(state(5, "ac")))
    assert reason(candidacy.state_to_replace(stored, [later], Follower())) == "group_store_too_old"
    assert reason(candidacy.state_to_replace(stored, [], Follower(promised=65_537))) == "group_store_too_old"
    assert reason(candidacy.state_to_replace(stored, [replace(C, promised_epoch=65_537)], Follower()))
    known.adopt(state(5, "ab"))
    assert reason(candidacy.state_to_replace(stored, [], Follower())) == "group_store_too_old"


def test_the_first_election_needs_all_members_and_the_longest_log(candidacy: Candidacy) -> None:
    first = candidacy.state_to_replace(None, [A, C], Follower())
    assert isinstance(first, GroupState)
    assert (first.epoch, first.in_sync) == (0, frozenset({"b.bbbb"}))
    assert reason(candidacy.state_to_replace(None, [A], Follower())) == "first_election_waits"
    assert reason(candidacy.state_to_replace(None, [A, replace(C, role=WRITER)], Follower())) == "first_election_waits"
    longer = candidacy.state_to_replace(None, [A, replace(C, end_offset=8)], Follower(log_end=7))
    assert longer == NotElectable("longer_log_found", {"members": ["c"]})


def test_a_group_whose_store_has_lost_its_state_goes_on_from_the_newest_that_a_member_knows(
    candidacy: Candidacy,
) -> None:
    knows = replace(A, state=encode_state(state(5, "ab")), promised_epoch=65_538, end_offset=9)
    found = candidacy.state_to_replace(None, [knows, C], Follower())
    assert found == replace(state(0, "ab"), epoch=65_538)
    knows = replace(A, state=encode_state(state(5, "ac")))
    assert reason(candidacy.state_to_replace(None, [knows, C], Follower())) == "not_electable"


def test_the_named_writer_goes_first_and_then_longer_logs(candidacy: Candidacy) -> None:
    ends = {"a": 30, "c": 20}
    answers = [replace(one, end_offset=ends[one.member]) for one in (A, C)]
    in_sync = state(4, "abc", writer="c")
    assert candidacy.rank(in_sync, answers, Follower(log_end=10)) == 2
    assert candidacy.rank(in_sync, answers, Follower(log_end=30)) == 2, "equal logs go by name"
    assert candidacy.rank(in_sync, answers, Follower(log_end=31)) == 1
    assert candidacy.rank(state(4, "abc", writer="b"), answers, Follower(log_end=10)) == 0
    assert candidacy.rank(state(4, "b", writer="c"), answers, Follower(log_end=10)) == 0, "they cannot be elected"
