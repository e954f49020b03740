"""The file with the members of all groups."""

from __future__ import annotations

import asyncio
import errno
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.unit.remoting_server.served import run
from tidemark.errors import DiskFullError
from tidemark.remoting_server.client_groups import SavedMembers
from tidemark.remoting_server.saved_clients import SavedClients, load_clients
from tidemark.store.storage import DiskStorage


class FullDisk(DiskStorage):
    """A disk without room while *is_full*. writes: attempts."""

    def __init__(self) -> None:
        self.is_full = False
        self.writes = 0

    def make_folder(self, folder: Path) -> None:
        self.writes += 1
        if self.is_full:
            raise DiskFullError("the disk is full", errno=errno.ENOSPC)
        super().make_folder(folder)


def _members(name: str) -> SavedMembers:
    return {"g": [name]}


def test_saved_members_are_loaded_by_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "new" / "clients.json"

    async def test() -> None:
        saved = SavedClients(path, DiskStorage())
        saved.save(lambda: {"g": ["a", "b"], "ü": ["c"]})
        await saved.close()

    run(test)
    assert load_clients(path) == {"g": ["a", "b"], "ü": ["c"]}


def test_changes_of_half_a_second_are_saved_together_and_the_last_one_wins(tmp_path: Path) -> None:
    disk = FullDisk()

    async def test() -> None:
        saved = SavedClients(tmp_path / "clients.json", disk)
        for number in range(1_000):
            saved.save(partial(_members, str(number)))
            await asyncio.sleep(0)
        await saved.close()

    run(test)
    assert load_clients(tmp_path / "clients.json") == {"g": ["999"]}
    assert 1 <= disk.writes <= 3


def test_members_are_listed_once_for_changes_that_are_saved_together(tmp_path: Path) -> None:
    """Thousands of clients join in a second after a restart."""
    lists = 0

    def members() -> SavedMembers:
        nonlocal lists
        lists += 1
        return {}

    async def test() -> None:
        saved = SavedClients(tmp_path / "clients.json", DiskStorage())
        for _ in range(1_000):
            saved.save(members)
        await saved.close()

    run(test)
    assert lists == 1


def test_a_full_disk_does_not_stop_later_saves(tmp_path: Path) -> None:
    disk = FullDisk()

    async def test() -> None:
        saved = SavedClients(tmp_path / "clients.json", disk)
        disk.is_full = True
        saved.save(partial(_members, "a"))
        await saved.close()
        disk.is_full = False
        saved.save(partial(_members, "b"))
        await saved.close()

    run(test)
    assert load_clients(tmp_path / "clients.json") == {"g": ["b"]}


def test_a_missing_file_is_no_member(tmp_path: Path) -> None:
    with capture_logs() as events:
        assert load_clients(tmp_path / "clients.json") == {}
    assert events == []


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"5", b"{}", b'{"version":1}', b'{"version":1,"groups":[]}', b'{"version":1,"groups":{"g":5}}',
     b"\xff", b"[" * 5_000],
)  # fmt: skip
def test_an_illegal_file_is_logged_and_is_no_member(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "clients.json").write_bytes(content)
    with capture_logs() as events:
        assert load_clients(tmp_path / "clients.json") == {}
    assert [event["event"] for event in events] == ["remoting_clients_not_loaded"]


def test_a_file_of_another_version_is_no_member(tmp_path: Path) -> None:
    (tmp_path / "clients.json").write_bytes(b'{"version":2,"groups":{"g":["a"]}}')
    assert load_clients(tmp_path / "clients.json") == {}
