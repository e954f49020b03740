"""Durable marks: results of their thread for the builder."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.indexer.pipeline.shards.durable_marks import DurableMarks
from tests.waiting import until
from tidemark.errors import FlushFailedError
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage


class UnsyncedShard:
    """A shard whose sync fails, with only the methods that durable marks use."""

    def take_sync(self) -> Callable[[], None]:
        return self._fail

    def _fail(self) -> None:
        raise FlushFailedError("fdatasync failed: input/output error")


class SyncedShard:
    """A shard without anything to sync."""

    def take_sync(self) -> Callable[[], None]:
        return lambda: None


class AskedTooLate(threading.Event):
    """An event on which a wait ends by its timeout, and which is set at that very moment."""

    def __init__(self) -> None:
        super().__init__()
        self.on_timeout: Callable[[], None] = lambda: None

    def wait(self, timeout: float | None = None) -> bool:
        is_set = super().wait(timeout)
        if not is_set:
            self.on_timeout()
        return is_set


def durable_marks(marks: Marks, shard: Any, *, interval_s: float) -> DurableMarks:
    return DurableMarks(
        marks,
        0,
        shard,
        interval_s=interval_s,
        lock=threading.Lock(),
        built=lambda: 100,
        wait_for_predecessor=lambda: None,
        confirm=lambda: None,
    )


def test_a_request_at_the_end_of_an_interval_is_answered(tmp_path: Path) -> None:
    """If it were lost, the epoch would never end, and no other task would get the shard."""
    marks = Marks.open_to_write(tmp_path / "marks", DiskStorage(), shards=1, term=1)
    durable = durable_marks(marks, SyncedShard(), interval_s=0.05)
    asked = durable._asked = AskedTooLate()
    was_asked = threading.Event()

    def ask() -> None:
        asked.on_timeout = lambda: None
        durable.ask()
        was_asked.set()

    asked.on_timeout = ask
    durable.start()
    assert was_asked.wait(10)
    until(durable.has_caught_up)
    durable.stop()
    marks.close()


def test_a_failed_sync_does_not_move_the_durable_mark(tmp_path: Path) -> None:
    """Otherwise an epoch would hand over and report that all keys are synced."""
    marks = Marks.open_to_write(tmp_path / "marks", DiskStorage(), shards=1, term=1)
    durable = durable_marks(marks, UnsyncedShard(), interval_s=60)
    durable.start()
    durable.ask()
    with pytest.raises(FlushFailedError):
        durable.stop()
    with pytest.raises(FlushFailedError):
        durable.has_caught_up()
    assert marks.durable(0) == 0
    marks.close()
