"""Durable marks: results of their thread for the builder."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.indexer.pipeline.shards.durable_marks import DurableMarks
from tidemark.errors import FlushFailedError
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage


class UnsyncedShard:
    """A shard whose sync fails, with only the methods that durable marks use."""

    def take_sync(self) -> Callable[[], None]:
        return self._fail

    def _fail(self) -> None:
        raise FlushFailedError("fdatasync failed: input/output error")


def test_a_failed_sync_does_not_move_the_durable_mark(tmp_path: Path) -> None:
    """Otherwise an epoch would hand over and report that all keys are synced."""
    marks = Marks.open_to_write(tmp_path / "marks", DiskStorage(), shards=1, term=1)
    shard: Any = UnsyncedShard()
    durable = DurableMarks(
        marks,
        0,
        shard,
        interval_s=60,
        lock=threading.Lock(),
        built=lambda: 100,
        wait_for_predecessor=lambda: None,
        confirm=lambda: None,
    )
    durable.start()
    durable.ask()
    with pytest.raises(FlushFailedError):
        durable.stop()
    with pytest.raises(FlushFailedError):
        durable.has_caught_up()
    assert marks.durable(0) == 0
    marks.close()
