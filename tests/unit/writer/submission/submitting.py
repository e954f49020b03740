"""A submitter of appends over an opened log in real files, as the server puts it together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from services.writer.admission.admission import Admission, SizeLimits
from services.writer.admission.append_request import Received
from services.writer.batch.batch import Batch
from services.writer.config import WriterSettings
from services.writer.submission.append_times import AppendTimes
from services.writer.submission.batch_submitter import BatchSubmitter, Sender
from services.writer.topics.topic_table import TopicTable
from tests.builders import BORN_HOST, STORE_HOST, wire_batch
from tests.unit.remoting_server.served import anyone
from tests.unit.writer.opened_log import LONG_S, OpenedLog, SyncGate, opened_log
from tidemark.access.guard import Caller, Guard
from tidemark.access.identity import Presented
from tidemark.v1.commit_log_pb2 import AppendBatchRequest

SEGMENT_SIZE = 1 << 18
ONE = wire_batch((b"a", b"", 0))


def caller_of(guard: Guard | None = None, token: str | None = None) -> Caller:
    """Return an admitted caller."""
    return (guard or anyone()).admit(Presented(token, None), address="10.0.0.1", action="Append")


def received(topic: str = "orders", packed: bytes = ONE, **fields: Any) -> Received:
    """Return an append to *topic*."""
    return Received.of(AppendBatchRequest(topic=topic, packed=packed, **fields))


class Submitting:
    """A submitter. delayed: batches that were passed to the scheduler."""

    def __init__(self, opened: OpenedLog, *, auto_create: bool, spans: Any = None, **settings: Any) -> None:
        self.opened = opened
        self.delayed: list[Batch] = []
        store = opened.store
        made = WriterSettings(store_root=store.paths.root, **settings)
        self.topics = TopicTable(store.paths, store.storage, auto_create=auto_create, default_queues=4)
        self.submitter = BatchSubmitter(
            made,
            opened.log,
            self.topics,
            Admission(SizeLimits(made.max_message_size_bytes, SEGMENT_SIZE), STORE_HOST),
            opened.counts,
            AppendTimes(0),
            on_delayed=self.delayed.append,
            spans=spans,
        )

    async def append(self, given: Received, caller: Caller | None = None) -> Batch:
        """Submit *given*, and return its answered batch. Raises StoreError."""
        answered: asyncio.Future[Batch] = asyncio.get_running_loop().create_future()
        await self.submitter.submit(Sender(caller or caller_of(), BORN_HOST), given, answered.set_result)
        return await asyncio.wait_for(answered, LONG_S)

    def refusals(self) -> dict[str, float]:
        """Return the number of refused appends by reason."""
        (family,) = (found for found in self.opened.counts.families() if found.name.startswith("tidemark_refused"))
        return {sample.labels["reason"]: sample.value for sample in family.samples if sample.name.endswith("_total")}


@asynccontextmanager
async def submitting_at(
    root: Path, disk: SyncGate | None = None, *, auto_create: bool = True, spans: Any = None, **settings: Any
) -> AsyncIterator[Submitting]:
    """Open a store at *root* with a submitter."""
    async with opened_log(root, disk, commit_log_segment_size_bytes=SEGMENT_SIZE, **settings) as opened:
        yield Submitting(opened, auto_create=auto_create, spans=spans, **settings)


def run(test: Callable[[Submitting], Coroutine[Any, Any, None]], root: Path, **given: Any) -> None:
    """Run *test* with a submitter over a new store at *root*."""

    async def main() -> None:
        async with submitting_at(root, **given) as submitting:
            await asyncio.wait_for(test(submitting), LONG_S)

    asyncio.run(main())
