"""Bells of followers."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import cast

from services.indexer.query.queue_allocation import Queue
from services.indexer.query.state.bell import Bell
from services.indexer.query.state.queue_ends import QueueEnds
from services.indexer.query.state.shared_pages import SharedPages
from services.indexer.query.state.watermark_watcher import WatermarkWatcher
from tests.built_store import BuiltStore
from tidemark.read.store_reader import StoreReader
from tidemark.store.mapped_file_queue import file_name

FOLLOWED = [Queue("orders", 0), Queue("orders", 1), Queue("%LMQ%light", 0)]


class NoWatcher:
    """A watcher that reads no watermark by itself."""

    def listen(self, listener: object) -> None:
        """Do nothing."""

    def listen_no_more(self, listener: object) -> None:
        """Do nothing."""


def test_only_the_queues_of_new_records_and_light_queues_are_checked(tmp_path: Path) -> None:
    """Units of a light queue point at records of another topic. None: any queue may have new records."""

    async def rung() -> list[set[Queue]]:
        built = BuiltStore(tmp_path / "store")
        for topic in ("orders", "%LMQ%light"):
            built.topic(topic, queues=2)
        store = StoreReader(built.root, refresh_s=0)
        ends = QueueEnds(store, cast(WatermarkWatcher, NoWatcher()), SharedPages())
        bell, found = Bell([]), []
        with contextlib.ExitStack() as stack:
            stack.enter_context(ends.ringing(bell, FOLLOWED))
            assert set(ends.watched) == set(FOLLOWED)
            ends.watermark_read(store.watermark(), None)
            for queues in ([("orders", 1), ("others", 0)], None):
                for queue in FOLLOWED:
                    built.append(queue.topic, queue_id=queue.queue_id)
                built.publish()
                bell.take()
                ends.watermark_read(store.watermark(), queues)
                found.append(bell.take())
        assert not ends.watched
        return found

    light = Queue("%LMQ%light", 0)
    assert asyncio.run(rung()) == [{Queue("orders", 1), light}, {*FOLLOWED}]


def test_followers_read_again_if_the_files_of_the_log_contradict_each_other(tmp_path: Path) -> None:
    """Their read reports it. An error here would end the checks of all waiting requests."""

    async def rung() -> set[Queue]:
        built = BuiltStore(tmp_path / "store")
        built.topic("orders", queues=2)
        built.append("orders")
        built.publish()
        store = StoreReader(built.root, refresh_s=0)
        ends = QueueEnds(store, cast(WatermarkWatcher, NoWatcher()), SharedPages())
        bell = Bell([])
        with ends.ringing(bell, FOLLOWED):
            watermark = store.watermark()
            ends.watermark_read(watermark, None)
            bell.take()
            (built.root / "commitlog" / file_name(store.log.known.end)).write_bytes(b"short")
            ends.watermark_read(watermark, None)
            return bell.take()

    assert asyncio.run(rung()) == {*FOLLOWED}
