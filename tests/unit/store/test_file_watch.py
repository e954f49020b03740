"""Reads of a watched file are reported only to its own watchers."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemark.store.file_watch import FileWatch, notify_watchers


@pytest.fixture
def watch() -> Iterator[FileWatch]:
    watch = FileWatch()
    yield watch
    watch.close()


def tell(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    notify_watchers(descriptor)
    os.close(descriptor)


def is_readable(watch: FileWatch) -> bool:
    poll = select.poll()
    poll.register(watch.descriptor, select.POLLIN)
    return bool(poll.poll(0))


def test_repeated_reads_are_one_watch_event(watch: FileWatch, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    watch.watch(path)
    assert not watch.take()
    for _ in range(3):
        tell(path)
    assert is_readable(watch)
    assert watch.take()
    assert not is_readable(watch)
    assert not watch.take()


def test_watching_another_file_replaces_the_first(watch: FileWatch, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for path in (first, second):
        path.write_bytes(b"x")
        watch.watch(path)
    watch.take()  # closing the first file is an event of its own
    tell(first)
    assert not watch.take()
    tell(second)
    assert watch.take()


def test_a_replaced_file_has_no_events_until_it_is_watched_again(watch: FileWatch, tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    for each in (path, other):
        each.write_bytes(b"x")
    watch.watch(path)
    os.replace(other, path)
    watch.take()
    tell(path)
    assert not watch.take()
    watch.watch(path)
    watch.take()
    tell(path)
    assert watch.take()


def test_watching_a_missing_file_raises(watch: FileWatch, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        watch.watch(tmp_path / "none")
