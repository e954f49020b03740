"""CommitLogService: the gRPC service for appends and for reading the log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc

from tidemark.access.guard import Caller
from tidemark.access.right import Action, on_topic
from tidemark.errors import (
    ArgumentIllegalError,
    CorruptStoreError,
    OffsetOutOfRangeError,
    OffsetTooSmallError,
    StoreClosedError,
    StoreError,
)
from tidemark.format.primitives import MAX_PROPERTIES_SIZE_BYTES
from tidemark.format.tags import SCHEDULE_TOPIC
from tidemark.store.originals.terms import Term
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceServicer

from ..admission.admission import Admission
from ..admission.append_request import Received
from ..admission.dead_letters import redirect
from ..admission.request_payload import wire_of
from ..admission.request_rules import check_request
from ..batch.batch import Batch
from ..config import FlushMode, WriterSettings
from ..log.append_counts import AppendCounts
from ..log.commit_log import CommitLog
from ..submission.append_times import AppendTimes
from ..topics.topic_table import TopicTable, WritableTopic
from .access_interceptor import CALLER
from .answers import response_of
from .append_stream import AppendStreamCall
from .client_host import born_host_of
from .committed_bytes import LogReader
from .send_back import SendBack

if TYPE_CHECKING:
    from ..submission.append_spans import AppendSpans, Metadata

_Context = grpc.aio.ServicerContext[Any, Any]

_MANY_MESSAGES = 1_000


class WriterIdentity(NamedTuple):
    """The values that responses contain."""

    term: Term
    store_host: bytes
    advertised_address: str


class _Sender(NamedTuple):
    """The sender of batches. metadata: of a call with a single batch, for traces."""

    caller: Caller
    born_host: bytes
    metadata: Metadata | None = None


def _setting(done: asyncio.Future[Batch]) -> Callable[[Batch], None]:
    """Return an answer function that sets *done*, unless the call was cancelled."""

    def answer(batch: Batch) -> None:
        if not done.cancelled():
            done.set_result(batch)

    return answer


class CommitLogService(CommitLogServiceServicer):
    """Converts between protobuf messages and the log. ErrorInterceptor turns raised errors into gRPC statuses."""

    def __init__(
        self,
        settings: WriterSettings,
        identity: WriterIdentity,
        commit_log: CommitLog,
        topics: TopicTable,
        admission: Admission,
        reader: LogReader,
        counts: AppendCounts,
        times: AppendTimes,
        send_back: SendBack,
        *,
        on_delayed: Callable[[Batch], None],
        free_disk_bytes: Callable[[], int],
        spans: AppendSpans | None,
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._commit_log = commit_log
        self._topics = topics
        self._admission = admission
        self._reader = reader
        self._counts = counts
        self._times = times
        self._send_back = send_back
        self._on_delayed = on_delayed
        self._free_disk_bytes = free_disk_bytes
        self._spans = spans
        self._streams: set[AppendStreamCall] = set()
        self._closing = False

    def close(self) -> None:
        """End each stream once its batches in flight are answered, because the server stops."""
        self._closing = True
        for stream in self._streams:
            stream.close()
        self._commit_log.committed.wake()

    async def AppendBatch(  # noqa: N802 - gRPC's name
        self, request: pb.AppendBatchRequest, context: _Context
    ) -> pb.AppendBatchResponse:
        done: asyncio.Future[Batch] = asyncio.get_running_loop().create_future()
        metadata = None if self._spans is None else context.invocation_metadata() or ()
        sender = _Sender(CALLER.get(), born_host_of(context.peer()), metadata)
        await self._submit(sender, Received.of(request), _setting(done))
        batch = await done
        if batch.error is not None:
            raise batch.error
        return self._respond(batch)

    async def AppendStream(  # noqa: N802
        self, request_iterator: AsyncIterator[pb.AppendStreamRequest], context: _Context
    ) -> AsyncIterator[pb.AppendStreamResponse]:
        sender = _Sender(CALLER.get(), born_host_of(context.peer()))
        stream = AppendStreamCall(
            partial(self._submit, sender),
            self._respond,
            max_in_flight_bytes=self._settings.max_stream_in_flight_bytes,
        )
        self._streams.add(stream)
        try:
            if self._closing:
                raise StoreClosedError("the writer is shutting down")
            async with contextlib.aclosing(stream.run(request_iterator)) as responses:
                async for response in responses:
                    yield response
        finally:
            self._streams.discard(stream)

    async def _submit(self, sender: _Sender, received: Received, answer: Callable[[Batch], None]) -> None:
        request = received.request
        answer = self._times.measuring(answer)
        span = None if self._spans is None else self._spans.begin(request, sender.metadata)
        try:
            sender.caller.require(on_topic(request.topic, Action.PUB))
            sender.caller.take_append(received.size)
            await self._admit(received, answer if span is None else span.ending(answer), sender.born_host)
        except StoreError as error:
            self._counts.refuse(error)
            if span is not None:
                span.refuse(error)
            raise

    async def _admit(self, received: Received, answer: Callable[[Batch], None], born_host: bytes) -> None:
        received, sent = self._redirect(received), received
        is_redirected = received is not sent
        request = received.request
        checked = self._topics.expect(request.topic, create=is_redirected)
        check_request(request, checked.config)
        payload = received.packed if received.packed is not None else await self._spelled_out(request)

        def make(topic: WritableTopic) -> Batch:
            if topic is not checked:  # the topic did not exist, or has changed since the check
                check_request(request, topic.config)
            batch = self._admission.admit(request, topic, payload, born_host=born_host, answer=answer)
            batch.is_redirected = is_redirected
            return batch

        await self._place(request.topic, make, create=is_redirected)

    def _redirect(self, received: Received) -> Received:
        """Return *received*, or the append to the dead letters that replaces it."""
        settings = self._settings
        return redirect(
            received,
            max_body_size=settings.max_message_size_bytes,
            max_reconsume_times=settings.max_reconsume_times,
        )

    async def _place(self, name: str, make: Callable[[WritableTopic], Batch], *, create: bool) -> None:
        """Submit the batch that *make* returns for topic *name*, once that topic exists.

        create: create a missing topic even if auto_create_topics is off.
        """
        while True:
            topic = self._topics.expect(name, create=create)
            batch = make(topic)
            has_room = batch.delay is None or self._topics.get(SCHEDULE_TOPIC) is not None
            if self._topics.get(name) is topic and has_room:
                break
            await self._topics.ensure(name)  # then repeat: another caller may have created it in another shape
            if not has_room:
                await self._topics.ensure_schedule()
        if batch.delay is not None:
            batch.answer = self._scheduling(batch.answer)
        self._commit_log.submit(batch)

    async def SendBack(  # noqa: N802
        self, request: pb.SendBackRequest, context: _Context
    ) -> pb.SendBackResponse:
        """Store a message of the log for another try.

        The interceptor requires Sub on the group. This method requires Sub on the topic too, because otherwise a caller
        could copy messages that it may not read.
        """
        caller = CALLER.get()
        caller.require(on_topic(request.topic, Action.SUB))
        done: asyncio.Future[Batch] = asyncio.get_running_loop().create_future()
        answer = self._times.measuring(_setting(done))
        try:
            copy = await self._send_back.copy_of(request)
            caller.take_append(len(copy.element.body))
            await self._place(copy.topic, lambda topic: self._send_back.batch_of(copy, topic, answer), create=True)
        except StoreError as error:
            self._counts.refuse(error)
            raise
        batch = await done
        if batch.error is not None:
            raise batch.error
        return pb.SendBackResponse(topic=copy.topic, dead_letter=copy.is_dead_letter, appended=self._respond(batch))

    def _scheduling(self, answer: Callable[[Batch], None]) -> Callable[[Batch], None]:
        """Return a function that passes a delayed message to the scheduler and then calls *answer*."""

        def schedule_and_answer(batch: Batch) -> None:
            if batch.appended is not None:
                self._on_delayed(batch)
            answer(batch)

        return schedule_and_answer

    async def _spelled_out(self, request: pb.AppendBatchRequest) -> bytes:
        """Encode the request's messages as a wire batch; many in a thread, so that the event loop is not blocked."""
        limit = self._settings.max_message_size_bytes
        if len(request.messages.messages) > _MANY_MESSAGES:
            return await asyncio.to_thread(wire_of, request, max_body_size=limit)
        return wire_of(request, max_body_size=limit)

    def _respond(self, batch: Batch) -> pb.AppendBatchResponse:
        return response_of(batch, store_host=self._identity.store_host, term=self._identity.term.number)

    async def ReadLog(  # noqa: N802
        self, request: pb.ReadLogRequest, context: _Context
    ) -> AsyncIterator[pb.ReadLogResponse]:
        committed = self._commit_log.committed
        position = request.physical_offset
        if request.max_bytes < 0:
            raise ArgumentIllegalError(
                f"max_bytes is {request.max_bytes}, and must be at least 0 (0: no limit)", argument="max_bytes"
            )
        self._require_readable(position)
        stop = position + request.max_bytes if request.max_bytes else None
        if not request.follow:
            stop = min(committed.offset, stop) if stop else committed.offset
        while stop is None or position < stop:
            end = committed.offset if stop is None else min(stop, committed.offset)
            if position >= end:
                await self._wait_committed()
                continue
            data = await self._reader.read(position, end)
            if not data:
                self._require_readable(position)
                raise CorruptStoreError(
                    f"the log has no bytes at physical offset {position}, although it is committed up to "
                    f"{committed.offset}",
                    physical_offset=position,
                )
            yield pb.ReadLogResponse(
                physical_offset=position,
                data=data,
                committed_offset=committed.offset,
                term=self._identity.term.number,
            )
            position += len(data)

    def _require_readable(self, position: int) -> None:
        least, greatest = self._commit_log.min_offset, self._commit_log.committed.offset
        if position < least:
            raise OffsetTooSmallError(
                f"physical_offset is {position}, but the log begins at {least}", min_offset=least, max_offset=greatest
            )
        if position > greatest:
            raise OffsetOutOfRangeError(
                f"physical_offset is {position}, but the log is committed up to {greatest}",
                min_offset=least,
                max_offset=greatest,
            )

    async def _wait_committed(self) -> None:
        if not self._closing:
            await self._commit_log.committed.wait()
        if self._closing:
            raise StoreClosedError("the writer is shutting down")

    async def WatchCommitted(  # noqa: N802
        self, request: pb.WatchCommittedRequest, context: _Context
    ) -> AsyncIterator[pb.WatchCommittedResponse]:
        seen = -1
        while True:
            offset = self._commit_log.committed.offset
            if offset != seen:
                seen = offset
                yield pb.WatchCommittedResponse(committed_offset=offset, term=self._identity.term.number)
            else:
                await self._wait_committed()

    async def GetLogInfo(  # noqa: N802
        self, request: pb.GetLogInfoRequest, context: _Context
    ) -> pb.GetLogInfoResponse:
        settings = self._settings
        is_sync = settings.flush_mode is FlushMode.SYNC
        return pb.GetLogInfoResponse(
            store_name=settings.store_name,
            advertised_address=self._identity.advertised_address,
            term=self._identity.term.number,
            recovered_end_offset=self._identity.term.recovered_end,
            min_physical_offset=self._commit_log.min_offset,
            committed_offset=self._commit_log.committed.offset,
            flushed_offset=self._commit_log.flushed_offset,
            max_physical_offset=self._commit_log.written_offset,
            flush_mode=pb.FLUSH_MODE_SYNC if is_sync else pb.FLUSH_MODE_ASYNC,
            segment_size_bytes=self._commit_log.segment_size,
            max_message_size_bytes=settings.max_message_size_bytes,
            max_properties_size_bytes=MAX_PROPERTIES_SIZE_BYTES,
            max_in_flight_bytes=settings.max_in_flight_bytes,
            idempotence_window_batches=settings.idempotence_window_batches,
            free_disk_bytes=self._free_disk_bytes(),
            min_free_disk_bytes=settings.min_free_disk_bytes,
        )
