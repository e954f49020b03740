"""CommitLogService: the gRPC service for appends and for reading the log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, NamedTuple

import grpc

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
from tidemark.store.originals.terms import Term
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceServicer

from ..admission.append_request import Received
from ..batch.batch import Batch
from ..config import FlushMode, WriterSettings
from ..log.commit_log import CommitLog
from ..submission.answers import response_of
from ..submission.batch_submitter import BatchSubmitter, Sender
from .access_interceptor import CALLER
from .append_stream import AppendStreamCall
from .client_host import born_host_of
from .committed_bytes import LogReader
from .send_back import SendBack

_Context = grpc.aio.ServicerContext[Any, Any]


class WriterIdentity(NamedTuple):
    """The values that responses contain. remoting_address: returns host:port, or an empty text if there is none."""

    term: Term
    store_host: bytes
    advertised_address: str
    remoting_address: Callable[[], str] = lambda: ""


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
        submitter: BatchSubmitter,
        reader: LogReader,
        send_back: SendBack,
        *,
        free_disk_bytes: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._commit_log = commit_log
        self._submitter = submitter
        self._reader = reader
        self._send_back = send_back
        self._free_disk_bytes = free_disk_bytes
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
        metadata = context.invocation_metadata() or () if self._submitter.has_spans else None
        sender = Sender(CALLER.get(), born_host_of(context.peer()), metadata)
        await self._submitter.submit(sender, Received.of(request), _setting(done))
        batch = await done
        if batch.error is not None:
            raise batch.error
        return self._respond(batch)

    async def AppendStream(  # noqa: N802
        self, request_iterator: AsyncIterator[pb.AppendStreamRequest], context: _Context
    ) -> AsyncIterator[pb.AppendStreamResponse]:
        sender = Sender(CALLER.get(), born_host_of(context.peer()))
        stream = AppendStreamCall(
            partial(self._submitter.submit, sender),
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
        answer = self._submitter.times.measuring(_setting(done))
        try:
            copy = await self._send_back.copy_of(request)
            caller.take_append(len(copy.element.body))
            await self._submitter.place(
                copy.topic, lambda topic: self._send_back.batch_of(copy, topic, answer), create=True
            )
        except StoreError as error:
            self._submitter.counts.refuse(error)
            raise
        batch = await done
        if batch.error is not None:
            raise batch.error
        return pb.SendBackResponse(topic=copy.topic, dead_letter=copy.is_dead_letter, appended=self._respond(batch))

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
            remoting_address=self._identity.remoting_address(),
        )
