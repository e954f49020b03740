"""Locks between processes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.unit.store.processes import running
from tidemark.errors import StoreLockedError
from tidemark.store.lock import FolderLock, StoreLock, lock_holder

HOLD_STORE = """
import sys
from pathlib import Path
from tidemark.store.lock import StoreLock
lock = StoreLock(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
"""
HOLD_FOLDER = HOLD_STORE.replace(
    "StoreLock(Path(sys.argv[1]))", "FolderLock(Path(sys.argv[1])); lock.require()"
).replace("import StoreLock", "import FolderLock")
POSIX_HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def test_the_store_lock_writes_rocketmqs_four_bytes(path: Path) -> None:
    """The file contains `lock` and stays after the release (docs/format.md §9)."""
    lock = StoreLock(path)
    assert path.read_bytes() == b"lock"
    lock.release()
    lock.release()
    assert path.exists()
    assert lock_holder(path) is None


def test_a_store_locked_by_another_process_is_refused_with_its_pid(path: Path) -> None:
    """The second process learns the holder's pid; when the first one dies, the lock is free."""
    with running(HOLD_STORE, path) as holder:
        assert lock_holder(path) == holder.pid
        with pytest.raises(StoreLockedError) as refused:
            StoreLock(path)
        assert refused.value.facts == {"path": str(path), "pid": holder.pid}
        assert lock_holder(path) == holder.pid
    assert lock_holder(path) is None
    StoreLock(path).release()


def test_a_posix_lock_on_byte_0_locks_the_store(path: Path) -> None:
    """A JVM's tryLock(0, 1) takes this lock on Linux."""
    path.write_bytes(b"lock")
    with running(POSIX_HOLDER, path) as holder:
        assert lock_holder(path) == holder.pid
        with pytest.raises(StoreLockedError):
            StoreLock(path)


def test_the_store_lock_excludes_a_posix_lock(path: Path) -> None:
    """A broker cannot start on Tidemark's store."""
    lock = StoreLock(path)
    with pytest.raises(AssertionError), running(POSIX_HOLDER, path):
        pass
    lock.release()
    with running(POSIX_HOLDER, path):
        pass


def test_a_second_lock_in_one_process_is_refused_and_keeps_the_first(path: Path) -> None:
    """POSIX would grant it, and its release would free the first one."""
    lock = StoreLock(path)
    with pytest.raises(StoreLockedError):
        StoreLock(path)
    assert lock_holder(path) == os.getpid()
    with pytest.raises(AssertionError), running(HOLD_STORE, path):
        pass
    lock.release()
    StoreLock(path).release()


def test_a_missing_lock_file_has_no_holder(path: Path) -> None:
    """Asking creates no file."""
    assert lock_holder(path) is None
    assert not path.exists()


def test_a_folder_lock_is_free_when_its_holder_dies(path: Path) -> None:
    """The way in which it ends does not matter."""
    lock = FolderLock(path)
    with running(HOLD_FOLDER, path):
        assert not lock.try_acquire()
        with pytest.raises(StoreLockedError) as refused:
            lock.require()
        assert refused.value.facts == {"path": str(path)}
    lock.acquire()
    lock.release()


def test_a_waiting_folder_lock_is_acquired_immediately_after_release(path: Path) -> None:
    """The standby of a shard gets it when the first one releases it."""
    first, second = FolderLock(path), FolderLock(path)
    first.require()
    taken = threading.Event()

    def take() -> None:
        second.acquire()
        taken.set()

    waiter = threading.Thread(target=take)
    waiter.start()
    assert not taken.wait(0.05)
    first.unlock()
    assert taken.wait(5)
    waiter.join()
    assert not first.try_acquire()
    second.release()
    assert first.try_acquire()
    first.release()
