"""AppendStreamCall: one client's stream. Batches are submitted as they arrive and answered as their groups complete."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

import structlog

from tidemark.errors import StoreError
from tidemark.v1.commit_log_pb2 import (
    AppendBatchResponse,
    AppendStreamRequest,
    AppendStreamResponse,
)

from ..admission.append_request import Received
from ..batch.batch import Batch
from ..submission.answers import rpc_status_of

log = structlog.get_logger()

Submit = Callable[[Received, Callable[[Batch], None]], Awaitable[None]]
_MAX_ANSWER_SIZE = 2 << 20  # approximate bytes of one response; clients accept 4 MiB by default
_MAX_UNTAKEN = 20_000  # results not yet read by the client, a few MiB; above it, no more batches are read


class AppendStreamCall:
    """Reads, submits and answers the batches of one stream.

    Unanswered batches and unread answers are bounded: above a bound, no further batches are read.
    """

    def __init__(
        self, submit: Submit, respond: Callable[[Batch], AppendBatchResponse], *, max_in_flight_bytes: int
    ) -> None:
        self._submit = submit
        self._respond = respond
        self._max_in_flight_bytes = max_in_flight_bytes
        self._in_flight_bytes = 0
        self._in_flight = 0
        self._results: list[AppendStreamResponse.Result] = []
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._read_all = False
        self._failure: BaseException | None = None
        self._closing = False

    async def run(self, requests: AsyncIterator[AppendStreamRequest]) -> AsyncGenerator[AppendStreamResponse, None]:
        """Yield responses until the client has ended its stream and every batch is answered."""
        reader = asyncio.create_task(self._read(requests))
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                while self._results:
                    yield self._take_response()
                if self._failure is not None:
                    raise self._failure
                if (self._read_all or self._closing) and not self._in_flight and not self._results:
                    return
        finally:
            reader.cancel()

    def close(self) -> None:
        """End the stream once every batch in flight is answered, because the server stops."""
        self._closing = True
        self._changed.set()

    def _take_response(self) -> AppendStreamResponse:
        size = 0
        for count, result in enumerate(self._results):
            size += 200 + len(result.appended.physical_offsets)
            if size > _MAX_ANSWER_SIZE and count:
                break
        else:
            count = len(self._results)
        taken, self._results = self._results[:count], self._results[count:]
        self._room.set()
        return AppendStreamResponse(results=taken)

    async def _read(self, requests: AsyncIterator[AppendStreamRequest]) -> None:
        try:
            async for request in requests:
                for entry in request.batches:
                    await self._wait_for_room()
                    await self._take(entry)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a bug must end the stream, not hang it
            self._failure = error
        finally:
            self._read_all = True
            self._changed.set()

    async def _wait_for_room(self) -> None:
        while self._in_flight_bytes >= self._max_in_flight_bytes or len(self._results) >= _MAX_UNTAKEN:
            self._room.clear()
            await self._room.wait()

    async def _take(self, entry: AppendStreamRequest.Entry) -> None:
        correlation_id = entry.correlation_id
        received = Received.of(entry.batch)
        size = received.size
        self._in_flight_bytes += size
        self._in_flight += 1

        def answer(batch: Batch) -> None:
            self._add(correlation_id, size, batch.error or batch)

        try:
            await self._submit(received, answer)
        except StoreError as error:
            self._add(correlation_id, size, error)

    def _add(self, correlation_id: int, size: int, outcome: Batch | StoreError) -> None:
        self._in_flight_bytes -= size
        self._in_flight -= 1
        if isinstance(outcome, StoreError):
            result = AppendStreamResponse.Result(correlation_id=correlation_id, error=rpc_status_of(outcome))
        else:
            result = AppendStreamResponse.Result(correlation_id=correlation_id, appended=self._respond(outcome))
        self._results.append(result)
        self._changed.set()
        self._room.set()
