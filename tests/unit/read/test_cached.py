"""Reads that must not wait: refused if the data is not in memory, and otherwise like any other read."""

from __future__ import annotations

import os
import threading
from functools import partial
from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tests.page_cache import require_refused, would_wait
from tidemark.read.cached import NotCachedError, acquire, cached_only, is_cached_only, pread
from tidemark.read.pull import PullRequest, PullResult, PullStatus, pull
from tidemark.read.store_reader import StoreReader

BODIES = [b"%d" % number * 500 for number in range(200)]


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    store = BuiltStore(tmp_path)
    store.topic("orders")
    for body in BODIES:
        store.append("orders", body)
    store.publish()
    return store


def pull_all(reader: StoreReader) -> PullResult:
    queue = reader.queue("orders", 0)
    bounds = reader.bounds(queue, reader.watermark())
    return pull(queue, reader.log, bounds, PullRequest(0, len(BODIES), 1 << 20))


def bodies_of(result: PullResult) -> list[bytes]:
    return [
        part.records.buffer[at : at + length].tobytes()
        for part in result.parts
        for at, length in zip(part.messages["body_at"], part.messages["body_length"], strict=True)
    ]


def test_cached_data_is_read_in_place(store: BuiltStore) -> None:
    reader = StoreReader(store.root)
    pull_all(reader)
    with cached_only():
        result = pull_all(reader)
    assert result.status is PullStatus.FOUND
    assert bodies_of(result) == BODIES


def test_uncached_data_is_refused_until_it_was_read(store: BuiltStore) -> None:
    """A refused read leaves no partial state."""
    readers: list[StoreReader] = []

    def is_refused() -> bool:
        readers.append(StoreReader(store.root))
        return would_wait(partial(pull_all, readers[-1]))

    require_refused(is_refused, store.root / "commitlog", store.root / "consumequeue")
    reader = readers[-1]
    assert bodies_of(pull_all(reader)) == BODIES
    with cached_only():
        assert bodies_of(pull_all(reader)) == BODIES


def test_a_short_read_at_the_end_of_a_file_is_refused_in_place(tmp_path: Path) -> None:
    """A short read does not show its reason."""
    path = tmp_path / "short"
    path.write_bytes(b"abc")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert pread(descriptor, 10, 0) == b"abc"
        with cached_only(), pytest.raises(NotCachedError):
            pread(descriptor, 10, 0)
    finally:
        os.close(descriptor)


def test_cached_only_applies_to_its_thread_only() -> None:
    seen: list[bool] = []
    with cached_only():
        assert is_cached_only()
        thread = threading.Thread(target=lambda: seen.append(is_cached_only()))
        thread.start()
        thread.join()
    assert seen == [False]
    assert not is_cached_only()


def test_a_held_lock_is_refused_in_place() -> None:
    lock = threading.Lock()
    acquire(lock)
    with cached_only(), pytest.raises(NotCachedError):
        acquire(lock)
    lock.release()
    with cached_only():
        acquire(lock)
    assert lock.locked()


def test_without_nowait_reads_every_read_is_refused_in_place(
    store: BuiltStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = StoreReader(store.root)
    pull_all(reader)
    monkeypatch.setattr("tidemark.read.cached._NO_WAIT", None)
    with cached_only(), pytest.raises(NotCachedError):
        pull_all(reader)
    assert bodies_of(pull_all(reader)) == BODIES


def test_a_pull_above_the_in_place_limit_is_refused(store: BuiltStore) -> None:
    """A pull of more messages than may be made in place is refused; a smaller one, or a thread's, is not."""
    reader = StoreReader(store.root)
    queue = reader.queue("orders", 0)
    bounds = reader.bounds(queue, reader.watermark())

    def pull_in_place(most: int) -> int:
        request = PullRequest(0, len(BODIES), 1 << 20, most_in_place=most)
        return pull(queue, reader.log, bounds, request).message_count

    assert pull_in_place(1) == len(BODIES)
    with cached_only():
        assert pull_in_place(len(BODIES)) == len(BODIES)
        with pytest.raises(NotCachedError):
            pull_in_place(len(BODIES) - 1)
