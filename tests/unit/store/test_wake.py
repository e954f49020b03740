"""Waiting on a word of a mapped file."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.unit.store.processes import running
from tidemark.store import wake
from tidemark.store.storage import DiskStorage, MappedWords

WAITER = """
import sys, time
from pathlib import Path
from tidemark.store import wake
from tidemark.store.storage import MappedWords
words = MappedWords(Path(sys.argv[1]), 4096, writable=False)
address = words.address(3)
seen = wake.word_at(address)
print("ready", flush=True)
while wake.word_at(address) == seen:
    wake.wait(address, seen, 10)
print(time.monotonic_ns(), flush=True)
"""


@pytest.fixture
def words(tmp_path: Path) -> MappedWords:
    made = DiskStorage().words(tmp_path / "words", 4096)
    assert isinstance(made, MappedWords)
    return made


@pytest.mark.parametrize("no_futex", ["", "1"])
def test_a_waiter_in_another_process_is_woken_before_its_timeout(
    tmp_path: Path, words: MappedWords, no_futex: str
) -> None:
    """A futex on a read-only mapping wakes it; without a futex it polls every two milliseconds."""
    address = words.address(3)
    with running(WAITER, tmp_path / "words", env={**os.environ, "TIDEMARK_NO_FUTEX": no_futex}) as waiter:
        assert waiter.stdout is not None
        time.sleep(0.1)
        woken_ns = time.monotonic_ns()
        words.store(3, 1)
        wake.wake(address)
        assert (int(waiter.stdout.readline()) - woken_ns) / 1e9 < 5  # its limit is ten
    words.close()


def test_a_wait_ends_at_its_limit(words: MappedWords) -> None:
    """It returns without being woken."""
    started = time.monotonic()
    wake.wait(words.address(0), 0, 0.03)
    assert time.monotonic() - started < 5
    words.close()


def test_a_wait_on_a_changed_word_returns_immediately(words: MappedWords) -> None:
    """A change between the read and the wait is not missed."""
    words.store(0, 5)
    started = time.monotonic()
    wake.wait(words.address(0), 4, 60)
    assert time.monotonic() - started < 30
    words.close()


@pytest.mark.parametrize("timeout_s", [0, -1, -0.001])
def test_a_wait_without_time_left_returns_immediately(words: MappedWords, timeout_s: float) -> None:
    """This holds with a word and without one."""
    wake.wait(words.address(0), 0, timeout_s)
    wake.wait(None, 0, timeout_s)
    words.close()


def test_a_wait_without_an_address_sleeps_briefly(words: MappedWords) -> None:
    """The sleep is short, and not longer than requested."""
    started = time.monotonic()
    wake.wait(None, 0, 60)
    wake.wake(None)
    assert time.monotonic() - started < 5
    words.close()
