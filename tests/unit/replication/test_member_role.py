from __future__ import annotations

from pathlib import Path

from tidemark.replication.group_state import GroupState
from tidemark.replication.member_files import MemberFiles
from tidemark.replication.member_role import MemberRole
from tidemark.store.storage import DiskStorage


def state(writer: str | None, epoch: int = 7) -> GroupState:
    return GroupState(1, epoch, writer, frozenset(), frozenset(), 2, "g")


def test_the_role_follows_the_groups_state(tmp_path: Path) -> None:
    files, role = MemberFiles(tmp_path, DiskStorage()), MemberRole(tmp_path)
    assert role.written_epoch() == 0, "without replication"
    own = f"a.{files.identity()}"
    files.save_state(state(own))
    assert role.written_epoch() == 7
    files.save_state(state("b.0123", epoch=8))
    assert role.written_epoch() is None
    files.save_state(state(None, epoch=9))
    assert role.written_epoch() is None
    files.save_state(state(own, epoch=10))
    assert role.written_epoch() == 10


def test_a_damaged_state_makes_no_writer(tmp_path: Path) -> None:
    files, role = MemberFiles(tmp_path, DiskStorage()), MemberRole(tmp_path)
    files.save_state(state(f"a.{files.identity()}"))
    (tmp_path / "group.json").write_bytes(b"{}")
    assert role.written_epoch() is None
