from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.writer.config import WriterSettings
from services.writer.group_settings import ReplicationMode
from services.writer.replication.promotion import Promotion
from tidemark.errors import ArgumentIllegalError, WriterUnreachableError
from tidemark.replication.group_state import GroupState
from tidemark.replication.group_store import ManualGroupStore
from tidemark.replication.member_files import MemberFiles
from tidemark.replication.stored_state import encode_state
from tidemark.store.storage import DiskStorage

WRITER, REPLICA = 1, 2


@dataclass
class Answer:
    """A member's description."""

    member: str
    role: int
    state: bytes = b""
    promised_epoch: int = 0


def state(revision: int, in_sync: str, *, writer: str = "a", eligible: str = "", epoch: int = 65_536) -> GroupState:
    members = {name: f"{name}.{name * 4}" for name in "abc"}
    return GroupState(
        revision,
        epoch,
        members[writer],
        frozenset(members[name] for name in in_sync),
        frozenset(members[name] for name in eligible),
        2,
        "g",
    )


def promotion_of_b(
    folder: Path, known: GroupState | None, others: Mapping[str, Answer], **settings: object
) -> Promotion:
    """Return the promotion of member b. others: by address; the others do not answer."""
    store = ManualGroupStore(MemberFiles(folder, DiskStorage()))
    if known is not None:
        store.adopt(known)
    made = WriterSettings(
        **{
            "replication": ReplicationMode.SYNC,
            "member": "b",
            "group_members": "a=a:1,b=b:1,c=c:1",
            **settings,
        }  # type: ignore[arg-type]
    )

    async def describe(address: str) -> Answer:
        if address not in others:
            raise WriterUnreachableError(f"{address} does not answer")
        return others[address]

    return Promotion(made, "b.bbbb", store, describe)


def state_of(promotion: Promotion, stopped: str = "", *, unclean: bool = False) -> GroupState:
    return asyncio.run(promotion.state(stopped, unclean=unclean))


def test_the_first_writer_makes_a_group(tmp_path: Path) -> None:
    made = state_of(promotion_of_b(tmp_path, None, {}))
    assert (made.epoch, made.writer, made.in_sync, made.min_in_sync) == (65_536, "b.bbbb", frozenset({"b.bbbb"}), 2)
    assert made.group


def test_a_member_in_sync_is_promoted_after_the_writer_was_stopped(tmp_path: Path) -> None:
    promotion = promotion_of_b(tmp_path, state(4, "ab"), {})
    with pytest.raises(ArgumentIllegalError, match="the writer of epoch 65536 is a"):
        state_of(promotion)
    made = state_of(promotion, "a")
    assert (made.epoch, made.writer, made.in_sync) == (131_072, "b.bbbb", frozenset({"b.bbbb"}))
    assert made.eligible == {"a.aaaa"}, "the others may be needed to commit"


def test_a_running_writer_is_not_replaced(tmp_path: Path) -> None:
    promotion = promotion_of_b(tmp_path, state(4, "ab"), {"a:1": Answer("a", WRITER)})
    with pytest.raises(ArgumentIllegalError, match="is the writer and answers"):
        state_of(promotion, "a", unclean=True)


def test_another_member_may_know_that_this_one_has_left_the_set(tmp_path: Path) -> None:
    others = {"c:1": Answer("c", REPLICA, encode_state(state(9, "ac")))}
    promotion = promotion_of_b(tmp_path, state(4, "abc"), others)
    with pytest.raises(ArgumentIllegalError, match="may lack committed messages: promote one of a, c"):
        state_of(promotion, "a")
    made = state_of(promotion, "a", unclean=True)
    assert (made.in_sync, made.eligible) == (frozenset({"b.bbbb"}), frozenset[str]())


def test_a_member_that_left_when_nothing_could_be_committed_is_promoted(tmp_path: Path) -> None:
    made = state_of(promotion_of_b(tmp_path, state(4, "a", eligible="b"), {}), "a")
    assert (made.writer, made.eligible) == ("b.bbbb", frozenset({"a.aaaa"}))


@pytest.mark.parametrize(("mode", "expected"), [(ReplicationMode.SYNC, 1), (ReplicationMode.ASYNC, 1)])
def test_the_settings_decide_how_many_must_be_in_sync(tmp_path: Path, mode: ReplicationMode, expected: int) -> None:
    promotion = promotion_of_b(tmp_path, state(4, "ab"), {}, replication=mode, min_in_sync=1)
    made = state_of(promotion, "a")
    assert (made.min_in_sync, made.eligible) == (expected, frozenset())


def test_the_taken_state_is_the_newest(tmp_path: Path) -> None:
    promotion = promotion_of_b(tmp_path, state(4, "ab"), {})
    made = state_of(promotion, "a")
    promotion.take(made)
    known = ManualGroupStore(MemberFiles(tmp_path, DiskStorage())).read()
    assert known is not None
    assert (known.writer, known.epoch, known.revision) == ("b.bbbb", 131_072, 5)
