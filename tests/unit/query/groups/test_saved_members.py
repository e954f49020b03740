from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.indexer.query.groups.saved_members import leave_members, take_members
from tidemark.errors import DiskFullError
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

GROUPS: dict[str, Any] = {"g": {"generation": 7, "members": {"one": {"topics": ["orders"]}}}}


class FullDisk(DiskStorage):
    """A disk without room."""

    def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
        raise DiskFullError("the disk is full")


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    found = StorePaths(tmp_path)
    found.members.parent.mkdir(parents=True)
    return found


def test_the_next_process_loads_the_saved_members(paths: StorePaths) -> None:
    leave_members(paths, DiskStorage(), GROUPS)
    assert take_members(paths, DiskStorage()) == GROUPS


def test_saved_members_are_loaded_only_once(paths: StorePaths) -> None:
    """A process that is killed later must not leave its own start behind."""
    leave_members(paths, DiskStorage(), GROUPS)
    take_members(paths, DiskStorage())
    assert take_members(paths, DiskStorage()) == {}


def test_no_members_file_is_written_without_groups(paths: StorePaths) -> None:
    leave_members(paths, DiskStorage(), {})
    assert not paths.members.exists()
    assert take_members(paths, DiskStorage()) == {}


def test_a_stop_on_a_full_disk_saves_no_members(paths: StorePaths) -> None:
    leave_members(paths, FullDisk(), GROUPS)
    assert take_members(paths, DiskStorage()) == {}


@pytest.mark.parametrize("change", [{"boot_id": "of another boot"}, {"version": 2}])
def test_saved_members_of_another_boot_or_version_are_discarded(paths: StorePaths, change: dict[str, Any]) -> None:
    leave_members(paths, DiskStorage(), GROUPS)
    content = json.loads(paths.members.read_bytes())
    paths.members.write_text(json.dumps({**content, **change}))
    assert take_members(paths, DiskStorage()) == {}
    assert not paths.members.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"null", b"\xff"])
def test_a_damaged_members_file_is_ignored_and_deleted(paths: StorePaths, content: bytes) -> None:
    paths.members.write_bytes(content)
    assert take_members(paths, DiskStorage()) == {}
    assert not paths.members.exists()
