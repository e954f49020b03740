from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from services.writer.config import WriterSettings
from services.writer.group_settings import ReplicationMode
from services.writer.replication.manual_leadership import ManualLeadership
from services.writer.replication.other_members import OtherMembers
from tidemark.errors import ArgumentIllegalError, WriterUnreachableError
from tidemark.replication.group_state import GroupState
from tidemark.replication.known_state import KnownState
from tidemark.replication.member import Member as GroupedMember
from tidemark.replication.member_files import MemberFiles
from tidemark.replication.stored_state import encode_state
from tidemark.store.storage import DiskStorage

from .answers import REPLICA, WRITER, Answer, Follower, state


class Member:
    """Member b. others: answers by their addresses; the others do not answer."""

    def __init__(self, folder: Path, known: GroupState | None, others: Mapping[str, Answer], **more: object) -> None:
        self.known = KnownState(MemberFiles(folder, DiskStorage()))
        if known is not None:
            self.known.adopt(known)
        settings = WriterSettings(
            **{"replication": ReplicationMode.SYNC, "member": "b", "group_members": "a=a:1,b=b:1,c=c:1", **more}  # type: ignore[arg-type]
        )

        async def describe(address: str, timeout_s: float) -> Answer:
            if address not in others:
                raise WriterUnreachableError(f"{address} does not answer")
            return others[address]

        others_of_b = OtherMembers(settings.other_members, describe)
        self.leadership = ManualLeadership(settings, "b.bbbb", self.known, others_of_b)

    def promoted(self, stopped: str = "", *, unclean: bool = False) -> GroupState:
        """Return the state after a promotion."""
        epoch = asyncio.run(self.leadership.promote(Follower(), stopped, unclean=unclean))
        state = self.known.read()
        assert state is not None
        assert state.epoch == epoch
        return state


def test_the_first_writer_makes_a_group(tmp_path: Path) -> None:
    made = Member(tmp_path, None, {}).promoted()
    assert (made.epoch, made.writer, made.in_sync, made.min_in_sync) == (65_536, "b.bbbb", frozenset({"b.bbbb"}), 2)
    assert made.group


def test_a_member_in_sync_is_promoted_after_the_writer_was_stopped(tmp_path: Path) -> None:
    member = Member(tmp_path, state(4, "ab"), {})
    with pytest.raises(ArgumentIllegalError, match="the writer of epoch 65536 is a"):
        member.promoted()
    made = member.promoted("a")
    assert (made.epoch, made.writer, made.in_sync) == (131_072, "b.bbbb", frozenset({"b.bbbb"}))
    assert made.eligible == {"a.aaaa"}, "the others may be needed to commit"


def test_a_running_writer_is_not_replaced(tmp_path: Path) -> None:
    member = Member(tmp_path, state(4, "ab"), {"a:1": Answer("a", WRITER)})
    with pytest.raises(ArgumentIllegalError, match="is the writer and answers"):
        member.promoted("a", unclean=True)


def test_another_member_may_know_that_this_one_has_left_the_set(tmp_path: Path) -> None:
    others = {"c:1": Answer("c", REPLICA, encode_state(state(9, "ac")))}
    member = Member(tmp_path, state(4, "abc"), others)
    with pytest.raises(ArgumentIllegalError, match="may lack committed messages: promote one of a, c"):
        member.promoted("a")
    made = member.promoted("a", unclean=True)
    assert (made.in_sync, made.eligible) == (frozenset({"b.bbbb"}), frozenset[str]())


def test_a_member_that_left_when_nothing_could_be_committed_is_promoted(tmp_path: Path) -> None:
    made = Member(tmp_path, state(4, "a", eligible="b"), {}).promoted("a")
    assert (made.writer, made.eligible) == ("b.bbbb", frozenset({"a.aaaa"}))


@pytest.mark.parametrize(("mode", "expected"), [(ReplicationMode.SYNC, 1), (ReplicationMode.ASYNC, 1)])
def test_the_settings_decide_how_many_must_be_in_sync(tmp_path: Path, mode: ReplicationMode, expected: int) -> None:
    member = Member(tmp_path, state(4, "ab"), {}, replication=mode, min_in_sync=1)
    made = member.promoted("a")
    assert (made.min_in_sync, made.eligible) == (expected, frozenset())


def test_the_taken_state_is_the_newest_and_the_member_writes_in_it(tmp_path: Path) -> None:
    member = Member(tmp_path, state(4, "ab"), {})
    made = member.promoted("a")
    assert (made.writer, made.epoch, made.revision) == ("b.bbbb", 131_072, 5)
    assert KnownState(MemberFiles(tmp_path, DiskStorage())).read() == made
    assert asyncio.run(member.leadership.begin(GroupedMember("b.bbbb", promised=65_536))) == made


def test_after_a_restart_the_writer_begins_the_next_epoch_unless_it_has_a_successor(tmp_path: Path) -> None:
    member = Member(tmp_path / "b", state(4, "ab", writer="b"), {})
    begun = asyncio.run(member.leadership.begin(GroupedMember("b.bbbb", promised=65_536)))
    assert begun is not None
    assert (begun.epoch, begun.in_sync, begun.eligible) == (65_537, frozenset({"b.bbbb"}), frozenset({"a.aaaa"}))
    for answer in (
        Answer("c", REPLICA, promised_epoch=131_072),
        Answer("c", REPLICA, encode_state(state(1, "ac", epoch=131_072))),
    ):
        replaced = Member(tmp_path / f"{answer.promised_epoch}", state(4, "ab", writer="b"), {"c:1": answer})
        assert asyncio.run(replaced.leadership.begin(GroupedMember("b.bbbb", promised=65_536))) is None
