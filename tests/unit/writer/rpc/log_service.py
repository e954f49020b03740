"""A service of the log over an opened log in real files, as the server puts it together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from services.writer.admission.admission import Admission, SizeLimits
from services.writer.batch.batch import Batch
from services.writer.config import WriterSettings
from services.writer.rpc.commit_log_service import CommitLogService, WriterIdentity
from services.writer.rpc.committed_bytes import LogReader
from services.writer.rpc.send_back import SendBack
from services.writer.submission.append_times import AppendTimes
from services.writer.submission.batch_submitter import BatchSubmitter
from services.writer.topics.topic_table import TopicTable
from tests.builders import STORE_HOST, wire_batch
from tests.unit.writer.opened_log import LONG_S, OpenedLog, SyncGate, opened_log
from tests.unit.writer.rpc.callers import call_as_anyone
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.v1 import commit_log_pb2 as pb

SEGMENT_SIZE = 1 << 18
FREE_BYTES = 12_345
ONE, TWO = wire_batch((b"a", b"", 0)), wire_batch((b"a", b"", 0), (b"b", b"", 0))


class Context:
    """The context of a call from 10.0.0.1:54321."""

    def peer(self) -> str:
        return "ipv4:10.0.0.1:54321"


CONTEXT: Any = Context()


class Service:
    """A service over an opened log. delayed: the batches that were passed to the scheduler."""

    def __init__(self, opened: OpenedLog, *, auto_create: bool, **settings: Any) -> None:
        self.opened = opened
        self.delayed: list[Batch] = []
        store = opened.store
        made = WriterSettings(store_root=store.paths.root, store_name="store-7", **settings)
        topics = TopicTable(store.paths, store.storage, auto_create=auto_create, default_queues=4)
        self.topics = topics
        self.reader = LogReader(lambda: MappedFileQueue(store.segments.log.folder, SEGMENT_SIZE))
        self.rpc = CommitLogService(
            made,
            WriterIdentity(store.term, STORE_HOST, "10.0.0.9:8081"),
            opened.log,
            BatchSubmitter(
                made,
                opened.log,
                topics,
                Admission(SizeLimits(made.max_message_size_bytes, SEGMENT_SIZE), STORE_HOST),
                opened.counts,
                AppendTimes(0),
                on_delayed=self.delayed.append,
                spans=None,
            ),
            self.reader,
            SendBack(opened.log, topics, self.reader, STORE_HOST, made.max_reconsume_times),
            free_disk_bytes=lambda: FREE_BYTES,
        )

    async def append(self, topic: str = "orders", packed: bytes = ONE, **fields: Any) -> pb.AppendBatchResponse:
        request = pb.AppendBatchRequest(topic=topic, packed=packed, **fields)
        return await asyncio.wait_for(self.rpc.AppendBatch(request, CONTEXT), LONG_S)

    async def read(self, physical_offset: int = 0, **fields: Any) -> bytes:
        request = pb.ReadLogRequest(physical_offset=physical_offset, **fields)
        async with asyncio.timeout(LONG_S):
            return b"".join([part.data async for part in self.rpc.ReadLog(request, CONTEXT)])

    async def info(self) -> pb.GetLogInfoResponse:
        return await self.rpc.GetLogInfo(pb.GetLogInfoRequest(), CONTEXT)

    def refusals(self) -> dict[str, float]:
        """Return the number of refused appends by reason."""
        (family,) = (found for found in self.opened.counts.families() if found.name.startswith("tidemark_refused"))
        return {sample.labels["reason"]: sample.value for sample in family.samples if sample.name.endswith("_total")}


@asynccontextmanager
async def _service_at(
    root: Path, disk: SyncGate | None = None, *, auto_create: bool = True, **settings: Any
) -> AsyncIterator[Service]:
    async with opened_log(root, disk, commit_log_segment_size_bytes=SEGMENT_SIZE, **settings) as opened:
        call_as_anyone()
        made = Service(opened, auto_create=auto_create, **settings)
        yield made
        made.reader.close()


def run(test: Callable[[Service], Coroutine[Any, Any, None]], root: Path, **settings: Any) -> None:
    """Run *test* with a service over a new store at *root*."""

    async def main() -> None:
        async with _service_at(root, **settings) as service:
            await test(service)

    asyncio.run(main())
