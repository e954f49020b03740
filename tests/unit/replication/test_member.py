from __future__ import annotations

import pytest

from tidemark.errors import PieceIllegalError, ReplicaDivergedError, StaleEpochError
from tidemark.replication.epochs import Epoch
from tidemark.replication.group_state import GroupState
from tidemark.replication.member import Member

EPOCHS = (Epoch(1, 0), Epoch(2, 100))
WRITERS = (*EPOCHS, Epoch(3, 120))


@pytest.fixture
def member() -> Member:
    """Return a member with bytes of two epochs up to 150, committed up to 110."""
    return Member("m", end=150, confirm=110, promised=2, epochs=EPOCHS)


def test_a_replica_cuts_what_only_its_log_has(member: Member) -> None:
    assert member.follow(3, WRITERS, 500) == 120
    assert (member.end, member.synced, member.confirm, member.promised) == (120, 120, 110, 3)
    assert member.epochs == EPOCHS


def test_an_epoch_is_noted_with_its_first_byte(member: Member) -> None:
    member.follow(3, WRITERS, 500)
    member.append(120, 120)
    assert len(member.epochs) == len(EPOCHS)
    member.append(120, 180)
    assert (member.end, member.epochs) == (180, WRITERS)


def test_a_replica_acknowledges_and_shows_synced_bytes_only(member: Member) -> None:
    member.follow(3, WRITERS, 500)
    member.append(120, 300)
    assert member.commit(250) == 120
    assert member.sync(200) == 200
    assert member.commit(250) == 200
    assert member.sync(180) == 200
    assert member.sync(999) == 300
    assert member.commit(250) == 250
    assert member.commit(100) == 250


def test_a_log_that_parts_below_the_confirm_offset_is_not_cut(member: Member) -> None:
    with pytest.raises(ReplicaDivergedError) as raised:
        member.follow(4, (Epoch(1, 0), Epoch(4, 105)), 500)
    assert raised.value.facts == {"point": 100, "confirm_offset": 110, "epoch": 4}
    assert (member.end, member.promised, member.epochs) == (150, 2, EPOCHS)


def test_an_older_writer_is_not_followed(member: Member) -> None:
    member.follow(3, WRITERS, 500)
    with pytest.raises(StaleEpochError) as raised:
        member.follow(2, EPOCHS, 500)
    assert raised.value.facts == {"epoch": 2, "newer_epoch": 3}


@pytest.mark.parametrize(("begin", "end"), [(119, 130), (121, 130), (120, 119)])
def test_a_piece_continues_the_log(member: Member, begin: int, end: int) -> None:
    member.follow(3, WRITERS, 500)
    with pytest.raises(PieceIllegalError, match="the log ends at 120"):
        member.append(begin, end)


def test_a_restarted_member_has_the_epochs_of_its_log() -> None:
    member = Member("m", end=90, confirm=80, promised=2, epochs=EPOCHS)
    assert member.epochs == EPOCHS[:1]


def test_a_new_writer_keeps_its_whole_log_and_begins_an_epoch(member: Member) -> None:
    state = GroupState(7, 4, "other", frozenset({"m", "n"}), frozenset(), 2)
    wanted = member.candidacy(state)
    assert wanted == state.elected("m")
    assert member.is_elected(wanted)
    members = member.promote(wanted)
    assert (member.end, member.synced, member.promised, member.epoch_start) == (150, 150, 5, 150)
    assert member.epochs == (*EPOCHS, Epoch(5, 150))
    assert (members.committed, members.known) == (110, wanted)


def test_a_member_that_may_lack_committed_bytes_is_no_candidate(member: Member) -> None:
    assert member.candidacy(GroupState(7, 4, "other", frozenset("n"), frozenset("o"), 2)) is None


@pytest.mark.parametrize(("epoch", "writer"), [(2, "m"), (1, "m"), (3, "n")])
def test_only_a_later_epoch_in_its_own_name_makes_a_member_the_writer(member: Member, epoch: int, writer: str) -> None:
    assert not member.is_elected(GroupState(7, epoch, writer, frozenset("m"), frozenset(), 1))
