from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tidemark.replication.member_role import MemberRole, PublishedRole
from tidemark.store.storage import DiskStorage

START = 4096


def now_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def test_a_store_of_its_own_has_no_role(tmp_path: Path) -> None:
    role = MemberRole(tmp_path)
    assert (role.written_epoch(), role.committed_below()) == (0, 0)


def test_the_published_role_is_seen_at_once(tmp_path: Path) -> None:
    published, role = PublishedRole(tmp_path, DiskStorage()), MemberRole(tmp_path)
    assert (role.written_epoch(), role.committed_below()) == (None, sys.maxsize)
    published.write(7, START, until_s=None)
    assert (role.written_epoch(), role.committed_below()) == (7, START)
    published.follow()
    assert role.written_epoch() is None
    published.write(9, START, until_s=None)
    published.close()
    assert role.written_epoch() is None


def test_a_writer_whose_lease_has_run_out_is_none(tmp_path: Path) -> None:
    """Its process may hang, or have been killed."""
    published, role = PublishedRole(tmp_path, DiskStorage()), MemberRole(tmp_path)
    published.write(7, START, until_s=now_s() - 0.1)
    assert (role.written_epoch(), role.committed_below()) == (None, sys.maxsize)
    published.extend(now_s() + 60)
    assert role.written_epoch() == 7


def test_a_role_of_before_the_machines_start_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PublishedRole(tmp_path, DiskStorage()).write(7, START, until_s=None)
    monkeypatch.setattr("tidemark.replication.member_role.machine_boot_id", lambda: "another start")
    assert MemberRole(tmp_path).written_epoch() is None


def test_a_store_that_becomes_a_members_is_noticed_by_a_refresh(tmp_path: Path) -> None:
    role = MemberRole(tmp_path / "replication")
    PublishedRole(tmp_path / "replication", DiskStorage())
    assert role.written_epoch() == 0
    role.refresh()
    assert role.written_epoch() is None
