from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tidemark.errors import StoreContradictionError
from tidemark.replication.group_state import GroupState
from tidemark.replication.group_store import ManualGroupStore, promoted_epoch, restarted_epoch
from tidemark.replication.known_state import KnownState
from tidemark.replication.member_files import MemberFiles
from tidemark.replication.stored_state import decode_state, encode_state
from tidemark.store.storage import DiskStorage

STATE = GroupState(7, 3, "a.0", frozenset({"a.0", "b.1"}), frozenset({"c.2"}), 2, "g")


def test_a_state_is_read_as_it_was_written() -> None:
    for state in (STATE, replace(STATE, writer=None, eligible=frozenset())):
        assert decode_state(encode_state(state)) == state


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", encode_state(STATE).replace(b'"version":1', b'"version":2')])
def test_other_data_is_no_state(data: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        decode_state(data)


def test_only_the_present_revision_is_replaced(tmp_path: Path) -> None:
    store = ManualGroupStore(KnownState(MemberFiles(tmp_path, DiskStorage())))
    assert store.read() is None
    first = store.propose(STATE)
    assert (first.revision, store.read()) == (8, first)
    outdated = replace(STATE, writer="b.1")
    assert store.propose(outdated) == first
    assert store.propose(replace(first, writer="b.1")).writer == "b.1"


def test_epochs_of_two_writers_never_meet() -> None:
    """The old writer may start again although another one was promoted."""
    old = [promoted_epoch(0)]
    for _ in range(100):
        old.append(restarted_epoch(old[-1]))
    assert promoted_epoch(old[0]) == promoted_epoch(old[-1]) not in old
    with pytest.raises(StoreContradictionError, match="65,535 times"):
        restarted_epoch(promoted_epoch(0) - 1)
