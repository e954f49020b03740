from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from tidemark.replication.group_state import GroupState
from tidemark.replication.known_state import KnownState, read_known_state
from tidemark.replication.member_files import MemberFiles
from tidemark.store.storage import DiskStorage

STATE = GroupState(7, 3, "a.0", frozenset({"a.0", "b.1"}), frozenset({"c.2"}), 2, "g")


def known_in(folder: Path) -> KnownState:
    return KnownState(MemberFiles(folder, DiskStorage()))


def test_a_newer_state_is_kept_over_a_restart_and_an_older_one_is_not_adopted(tmp_path: Path) -> None:
    known = known_in(tmp_path)
    assert known.read() is None
    newer = replace(STATE, epoch=4, revision=1)
    assert known.adopt(newer) == newer
    assert known.adopt(STATE) == newer
    assert known.read() == newer == known_in(tmp_path).read()


def test_threads_that_adopt_at_once_leave_the_newest_state(tmp_path: Path) -> None:
    known = known_in(tmp_path)
    threads = [
        threading.Thread(
            target=lambda start=start: [known.adopt(replace(STATE, revision=n)) for n in range(start, 60, 3)]
        )
        for start in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert known.read() == known_in(tmp_path).read() == replace(STATE, revision=59)


def test_other_programs_read_the_state_and_see_none_where_it_cannot_be_read(tmp_path: Path) -> None:
    assert read_known_state(tmp_path) is None
    known_in(tmp_path).adopt(STATE)
    assert read_known_state(tmp_path) == STATE
    (tmp_path / "group.json").write_bytes(b"{}")
    assert read_known_state(tmp_path) is None
