"""Unsafe stores, which services refuse to open."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from services.indexer.attach.__main__ import main as attach_main
from services.indexer.pipeline.__main__ import main as pipeline_main
from services.indexer.query.__main__ import main as query_main
from services.writer.door import main as writer_main
from tests.built_store import BuiltStore
from tidemark.errors import StoreUnsafeError
from tidemark.store.log_folders import LogFolders
from tidemark.store.paths import StorePaths
from tidemark.store.safety import require_safe_store


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a store with a message, a queue and an index."""
    built = BuiltStore(tmp_path / "store")
    built.topic("orders")
    built.append("orders", entries={"KEYS": "k"})
    built.publish()
    return built.root


def fault_of(paths: StorePaths, *, with_queues: bool = True) -> tuple[str, str] | None:
    """Return the fault and its place, or None if all is safe."""
    try:
        require_safe_store(paths, with_queues=with_queues)
    except StoreUnsafeError as error:
        return str(error.fault), str(error.path)
    return None


def test_a_new_store_is_safe(root: Path, tmp_path: Path) -> None:
    """A store that does not exist yet is safe too, and a store may be reached by a symlink."""
    (tmp_path / "link").symlink_to(root)
    for path in (root, tmp_path / "link", tmp_path / "new"):
        assert fault_of(StorePaths(path)) is None


@pytest.mark.parametrize("name", [".", "commitlog", "config", "consumequeue", "index", "tidemark"])
def test_a_world_writable_path_is_refused(root: Path, name: str) -> None:
    """This covers the store and all its contents."""
    (root / name).chmod(0o777)
    assert fault_of(StorePaths(root)) == ("WORLD_WRITABLE", str(root / name))


def test_a_group_writable_store_is_accepted(root: Path) -> None:
    """Services may run as several users of one group."""
    root.chmod(0o770)
    assert fault_of(StorePaths(root)) is None


def test_a_store_of_another_user_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's files are trusted by all users, and root may work in any store."""
    owner = root.stat().st_uid
    for user, fault in ((owner + 1, ("OWNER", str(root))), (owner, None), (0, None)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert fault_of(StorePaths(root)) == (None if owner == 0 else fault)


@pytest.mark.parametrize(
    "name",
    [
        "commitlog",
        "commitlog/00000000000000000000",
        "config",
        "config/topics.json",
        "tidemark",
        "tidemark/indexer",
        "tidemark/indexer/marks",
        "consumequeue",
        "consumequeue/orders",
        "consumequeue/orders/0",
        "consumequeue/orders/0/00000000000000000000",
        "index",
    ],
)
def test_a_symlink_inside_the_store_is_refused(root: Path, tmp_path: Path, name: str) -> None:
    """The target does not matter; queues and index are checked only for services that use them."""
    elsewhere = tmp_path / "elsewhere"
    (root / name).rename(elsewhere)
    (root / name).symlink_to(elsewhere)
    assert fault_of(StorePaths(root)) == ("SYMLINK", str(root / name))
    is_of_queues = name.startswith(("consumequeue", "index"))
    assert (fault_of(StorePaths(root), with_queues=False) is None) == is_of_queues


def test_a_configured_log_folder_may_be_a_symlink(root: Path, tmp_path: Path) -> None:
    """Its files must not be symlinks, and the folder must not be world-writable."""
    disk = tmp_path / "disk"
    (root / "commitlog").rename(disk)
    (tmp_path / "named").symlink_to(disk)
    paths = StorePaths(root, LogFolders.parse(root, str(tmp_path / "named"), ""))
    assert fault_of(paths) is None
    disk.chmod(0o777)
    assert fault_of(paths) == ("WORLD_WRITABLE", str(tmp_path / "named"))
    disk.chmod(0o700)
    (disk / "00000000000000065536").symlink_to(disk / "00000000000000000000")
    assert fault_of(paths) == ("SYMLINK", str(tmp_path / "named" / "00000000000000065536"))


def test_only_the_state_folder_of_an_attached_store_is_checked(root: Path, tmp_path: Path) -> None:
    """Tidemark writes nothing to the broker's folders, so they are not checked."""
    state = tmp_path / "state"
    (state / "tidemark").mkdir(parents=True)
    root.chmod(0o777)
    assert fault_of(StorePaths(root, state=state)) is None
    state.chmod(0o777)
    assert fault_of(StorePaths(root, state=state)) == ("WORLD_WRITABLE", str(state))


DOORS: dict[str, Callable[[Path], int]] = {
    "writer": lambda root: writer_main(["--store-root", str(root)]),
    "pipeline": lambda root: pipeline_main(["--store-root", str(root)]),
    "query": lambda root: query_main(["--store-root", str(root)]),
    "attach": lambda root: attach_main(["--store-root", f"{root}-of-a-broker", "--state-root", str(root)]),
}


@pytest.mark.parametrize("service", DOORS)
def test_every_service_exits_before_a_write_to_an_unsafe_store(
    root: Path, service: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The service prints one line with the reason and exits with 1."""
    monkeypatch.setenv("TIDEMARK_STORE_ROOT", str(root))
    root.chmod(0o777)
    before = sorted(root.rglob("*"))
    assert DOORS[service](root) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert "STORE_UNSAFE" in line or "StoreUnsafeError" in line
    assert "is writable by all users" in line
    assert sorted(root.rglob("*")) == before
