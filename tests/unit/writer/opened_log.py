"""A commit log over an opened store in real files, put together as the server does, for tests of its callers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from services.writer.batch.batch import Batch
from services.writer.composition import compose_commit_log
from services.writer.config import WriterSettings
from services.writer.log.append_counts import AppendCounts
from services.writer.log.open_store import OpenStore, close_store, open_store, release_store
from services.writer.topics.topic_table import TopicTable
from tests.builders import STORE_HOST
from tidemark.errors import FlushFailedError
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
        self.log = compose_commit_log(
            settings, store, STORE_HOST, self.counts, self.topics.dead_end, on_failure=self.failed.set
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
