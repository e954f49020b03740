"""A commit log over an opened store in real files, put together as the server does, for tests of its callers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from services.writer.batch.batch import Batch
from services.writer.batch.record_encoder import Encoder
from services.writer.config import WriterSettings
from services.writer.dedup.recent_batches import Window
from services.writer.log.append_counts import AppendCounts
from services.writer.log.background_chores import Keeper
from services.writer.log.commit_log import CommitLog
from services.writer.log.disk_guard import DiskGuard
from services.writer.log.log_tail import LogTail
from services.writer.log.open_store import OpenStore, close_store, open_store, release_store
from services.writer.log.page_preallocation import PagesAhead
from services.writer.topics.topic_table import TopicTable
from tests.builders import STORE_HOST
from tidemark.errors import FlushFailedError, StoreError
from tidemark.store.storage import DiskStorage

LONG_S = 20.0


class SyncGate(DiskStorage):
    """A disk whose syncs wait while *is_open* is clear, and fail while *fails* is set."""

    def __init__(self) -> None:
        self.is_open = threading.Event()
        self.is_open.set()
        self.fails = False

    def fdatasync(self, descriptor: int) -> None:
        assert self.is_open.wait(LONG_S), "the test has left the gate closed"
        if self.fails:
            raise FlushFailedError("the disk refuses syncs")
        super().fdatasync(descriptor)


class OpenedLog:
    """A started commit log and the parts that tests look at."""

    def __init__(self, settings: WriterSettings, store: OpenStore) -> None:
        self.store = store
        self.failed = asyncio.Event()
        self.counts = AppendCounts(max_topics=100)
        self.topics = TopicTable(store.paths, store.storage, auto_create=True, default_queues=4)
        pages, recovered = PagesAhead(store.segments.log), store.recovered
        window = Window(settings.idempotence_window_batches, recovered.tail_keys)

        def make_keeper(flushed_offset: Callable[[], int], on_failure: Callable[[StoreError], None]) -> Keeper:
            return Keeper(
                store.segments,
                store.make_committed_durable,
                store.storage,
                store.snapshot_path,
                interval_s=0.01,
                flushed_offset=flushed_offset,
                on_failure=on_failure,
            )

        tail = LogTail(
            store.segments,
            Encoder(STORE_HOST),
            recovered.offsets,
            window,
            DiskGuard(store.paths.root, settings.min_free_disk_bytes),
            store.journal,
            pages,
            position=recovered.end,
            store_timestamp=recovered.store_timestamp,
            buffer_size=settings.write_buffer_size_bytes,
        )
        self.log = CommitLog(
            settings,
            segments=store.segments,
            tail=tail,
            window=window,
            checkpoint=store.checkpoint,
            flushed=store.flushed,
            journal=store.journal,
            pages=pages,
            counts=self.counts,
            dead_end=self.topics.dead_end,
            make_keeper=make_keeper,
            on_failure=self.failed.set,
        )
        self.log.start()

    def submit(self, batch: Batch) -> asyncio.Future[Batch]:
        """Submit a copy of *batch*, whose future has the answered one."""
        answered: asyncio.Future[Batch] = asyncio.get_running_loop().create_future()
        self.log.submit(replace(batch, answer=answered.set_result))
        return answered

    async def append(self, *batches: Batch) -> list[Batch]:
        """Submit *batches* in one turn of the loop, and return the answered ones."""
        return await asyncio.wait_for(asyncio.gather(*map(self.submit, batches)), LONG_S)


@asynccontextmanager
async def opened_log(root: Path, storage: DiskStorage | None = None, **settings: Any) -> AsyncIterator[OpenedLog]:
    """Open the store at *root*, and close it as a clean stop does; after a failure of the log it is only released."""
    given = {"commit_log_segment_size_bytes": 1 << 16, "min_free_disk_bytes": 0, **settings}
    made = WriterSettings(store_root=root, **given)
    opened = OpenedLog(made, open_store(made, storage or DiskStorage()))
    try:
        yield opened
    finally:
        await opened.log.close()
        if opened.log.failure is None:
            close_store(opened.store, opened.log.snapshot())
        else:
            release_store(opened.store)
