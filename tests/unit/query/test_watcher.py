"""Who is woken, and when."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.indexer.query.watcher import WatermarkWatcher
from tests.built_store import BuiltStore
from tidemark.errors import InFlightLimitError
from tidemark.read.store_reader import StoreReader
from tidemark.store import wake


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    return BuiltStore(tmp_path / "store")


@pytest.fixture
def watcher(built: BuiltStore) -> Iterator[WatermarkWatcher]:
    watcher = WatermarkWatcher(StoreReader(built.root), recheck_ms=5_000, max_waiting=3)
    watcher.start()
    yield watcher
    watcher.stop()


def publish(built: BuiltStore, offset: int) -> None:
    """As the pipeline does: the mark, then whoever sleeps on it."""
    built.marks.publish(0, offset)
    wake.wake(built.marks.count_word_address())


def test_only_whom_it_concerns(built: BuiltStore, watcher: WatermarkWatcher) -> None:
    """Two wait for different places; a publication wakes the one it serves, long before a recheck would."""

    async def wait_for_both() -> tuple[float, float]:
        began = time.monotonic()
        ends: dict[int, float] = {}

        async def wait(offset: int) -> None:
            assert await watcher.wait(lambda watermark: watermark.physical_offset > offset, 10)
            ends[offset] = time.monotonic() - began

        threading.Timer(0.2, publish, (built, 150)).start()
        threading.Timer(0.6, publish, (built, 250)).start()
        await asyncio.gather(wait(100), wait(200))
        return ends[100], ends[200]

    near, far = asyncio.run(wait_for_both())
    assert 0.2 <= near < 0.55
    assert 0.6 <= far < 4


def test_what_is_there_already_is_not_waited_for(built: BuiltStore, watcher: WatermarkWatcher) -> None:
    """It came between the asker's look and the wait."""
    publish(built, 10)
    began = time.monotonic()
    assert asyncio.run(watcher.wait(lambda watermark: watermark.physical_offset >= 10, 10))
    assert time.monotonic() - began < 2


def test_a_wait_ends(watcher: WatermarkWatcher) -> None:
    assert not asyncio.run(watcher.wait(lambda _: False, 0.1))
    assert watcher.waiting == 0


def test_too_many_are_refused(watcher: WatermarkWatcher) -> None:
    async def four() -> None:
        await asyncio.gather(*(watcher.wait(lambda _: False, 0.3) for _ in range(4)))

    with pytest.raises(InFlightLimitError):
        asyncio.run(four())


def test_a_stop_wakes_everybody(built: BuiltStore) -> None:
    watcher = WatermarkWatcher(StoreReader(built.root), recheck_ms=5_000, max_waiting=3)
    watcher.start()
    threading.Timer(0.1, watcher.stop).start()
    assert asyncio.run(watcher.wait(lambda _: False, 10))
    assert not asyncio.run(watcher.wait(lambda _: False, 10))
