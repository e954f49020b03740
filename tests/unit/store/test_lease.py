"""A lease moves when its holder releases it, ends or hangs; a holder that wakes up later is refused."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tidemark.errors import StoreLockedError
from tidemark.store import lease as lease_module
from tidemark.store.lease import Lease

LENGTH_MS = 1000
HOLDER = """
import sys
from pathlib import Path
from tidemark.errors import StoreLockedError
from tidemark.store.lease import Lease

lease = Lease(Path(sys.argv[1]), length_ms=int(sys.argv[2]))
lease.acquire()
print("held", lease.generation, flush=True)
for line in sys.stdin:
    try:
        lease.confirm()
        print("mine", flush=True)
    except StoreLockedError:
        print("lost", flush=True)
"""


class Holder:
    """A process that holds the lease, and reports on request whether it still does."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(path), str(LENGTH_MS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.generation = int(self._line().split()[1])

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def says(self) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        return self._line()

    def send(self, number: int) -> None:
        os.kill(self.process.pid, number)


@contextmanager
def holding(path: Path) -> Iterator[Holder]:
    holder = Holder(path)
    try:
        yield holder
    finally:
        holder.process.kill()
        holder.process.communicate()


def test_a_lease_has_one_holder_and_a_new_generation_each_time(tmp_path: Path) -> None:
    path = tmp_path / "lease"
    first, second = Lease(path, length_ms=60_000), Lease(path, length_ms=60_000)
    first.acquire()
    assert not second.try_acquire()
    first.confirm()
    waiting = threading.Thread(target=second.acquire)
    waiting.start()
    first.release()
    waiting.join(5)
    assert (first.generation, second.generation, second.was_taken) == (1, 2, False)
    second.unlock()
    assert first.try_acquire() and first.generation == 3
    first.release()


def test_the_lease_of_a_killed_holder_is_free_immediately(tmp_path: Path) -> None:
    """The lock ends with the process: no waiting for the lease's length."""
    lease = Lease(tmp_path / "lease", length_ms=60_000)
    with holding(tmp_path / "lease") as holder:
        holder.send(signal.SIGKILL)
        lease.acquire()
        assert (lease.generation, lease.was_taken) == (holder.generation + 1, False)
        lease.release()


def test_a_hanging_holder_loses_the_lease_and_is_refused_when_it_resumes(tmp_path: Path) -> None:
    lease = Lease(tmp_path / "lease", length_ms=LENGTH_MS)
    with holding(tmp_path / "lease") as holder:
        assert holder.says() == "mine"
        holder.send(signal.SIGSTOP)
        began = time.monotonic()
        lease.acquire()
        assert time.monotonic() - began >= LENGTH_MS / 1000
        assert (lease.generation, lease.was_taken) == (holder.generation + 1, True)
        holder.send(signal.SIGCONT)
        assert holder.says() == "lost"
        lease.confirm()
        lease.release()
        assert holder.says() == "lost"


def test_a_suspended_holder_without_a_successor_keeps_the_lease(tmp_path: Path) -> None:
    """No other process has taken the lease, so the holder renews it."""
    with holding(tmp_path / "lease") as holder:
        holder.send(signal.SIGSTOP)
        time.sleep(1.5 * LENGTH_MS / 1000)
        holder.send(signal.SIGCONT)
        assert holder.says() == "mine"


def test_a_working_holder_keeps_the_lease(tmp_path: Path) -> None:
    """A long task does not matter: the lease is renewed concurrently."""
    lease = Lease(tmp_path / "lease", length_ms=2 * LENGTH_MS)
    with holding(tmp_path / "lease") as holder:
        waiting = threading.Thread(target=lease.acquire)
        waiting.start()
        waiting.join(2.5 * 2 * LENGTH_MS / 1000)
        assert waiting.is_alive()
        assert holder.says() == "mine"
    waiting.join(5)
    assert not lease.was_taken
    lease.release()


def test_only_one_of_several_takers_gets_the_lease(tmp_path: Path) -> None:
    path = tmp_path / "lease"
    leases = [Lease(path, length_ms=LENGTH_MS) for _ in range(4)]
    holders: list[Lease] = []

    def take(lease: Lease) -> None:
        lease.acquire()
        holders.append(lease)

    with holding(path) as holder:
        holder.send(signal.SIGSTOP)
        threads = [threading.Thread(target=take, args=(lease,), daemon=True) for lease in leases]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 30
        for count in range(1, len(leases) + 1):
            while len(holders) < count and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.3)
            assert len(holders) == count, "one after the other"
            holders[-1].confirm()
            holders[-1].release()
    assert sorted(lease.generation for lease in leases) == [2, 3, 4, 5]


def test_a_lease_that_was_just_taken_over_is_not_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes saw the same silent holder: the slower one waits for the faster one, the new holder."""
    first, second = (Lease(tmp_path / "lease", length_ms=LENGTH_MS) for _ in range(2))
    replace = lease_module._replace
    with holding(tmp_path / "lease") as holder:
        holder.send(signal.SIGSTOP)

        def replace_late(path: Path, *silent: Any) -> int | None:
            monkeypatch.setattr(lease_module, "_replace", replace)
            first.acquire()
            return replace(path, *silent)

        monkeypatch.setattr(lease_module, "_replace", replace_late)
        waiting = threading.Thread(target=second.acquire, daemon=True)
        waiting.start()
        waiting.join(4 * LENGTH_MS / 1000)
        assert (first.generation, second.generation) == (2, 0)
        first.confirm()
        first.release()
        waiting.join(30)
        assert (second.generation, second.was_taken) == (3, False)
        second.release()


@pytest.fixture
def made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the next generation's file: between open and lock, one process removes it, another creates its own."""
    made = tmp_path / "lease.2"
    try_flock = lease_module._try_flock

    def late(descriptor: int) -> bool:
        monkeypatch.setattr(lease_module, "_try_flock", try_flock)
        made.unlink()
        made.write_bytes(b"the third one's")
        return try_flock(descriptor)

    monkeypatch.setattr(lease_module, "_try_flock", late)
    return made


def test_a_takeover_renames_only_its_own_file(made_again: Path) -> None:
    path, words = made_again.with_name("lease"), struct.pack("<QQ", 1, 7)
    path.write_bytes(words)
    assert lease_module._replace(path, (1, 7)) is None
    assert (path.read_bytes(), made_again.read_bytes()) == (words, b"the third one's")


def test_removing_a_leftover_removes_no_other_file(made_again: Path) -> None:
    made_again.touch()
    lease_module._remove_leftover(made_again)
    assert made_again.read_bytes() == b"the third one's"


def test_a_leftover_of_a_killed_takeover_does_not_block_the_next(tmp_path: Path) -> None:
    lease = Lease(tmp_path / "lease", length_ms=LENGTH_MS)
    with holding(tmp_path / "lease") as holder:
        leftover = tmp_path / f"lease.{holder.generation + 1}"
        leftover.touch()
        holder.send(signal.SIGSTOP)
        lease.acquire()
        assert lease.was_taken
        assert not leftover.exists()
        lease.release()


def test_confirm_without_the_lease_is_refused(tmp_path: Path) -> None:
    lease = Lease(tmp_path / "lease", length_ms=LENGTH_MS)
    with pytest.raises(StoreLockedError):
        lease.confirm()
    lease.acquire()
    lease.release()
    with pytest.raises(StoreLockedError):
        lease.confirm()
