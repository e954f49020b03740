from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from google.rpc import error_details_pb2

from services.writer.admission.append_request import Received
from services.writer.batch.batch import Batch
from services.writer.rpc.append_stream import AppendStreamCall
from tests.unit.writer.batches import batch_of
from tidemark.errors import FlushFailedError, QueueIllegalError
from tidemark.v1.commit_log_pb2 import (
    AppendBatchRequest,
    AppendBatchResponse,
    AppendStreamRequest,
    AppendStreamResponse,
)

LONG_S = 20.0


class Writer:
    """Takes batches, keeps their answers until `answer`, and refuses those of topic "refused"."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Received, Callable[[Batch], None]]] = []
        self.taken = asyncio.Condition()

    async def submit(self, received: Received, answer: Callable[[Batch], None]) -> None:
        if received.request.topic == "refused":
            raise QueueIllegalError("no such queue", queue_id=9, queues=4)
        if received.request.topic == "bug":
            raise RuntimeError("a bug")
        self.waiting.append((received, answer))
        async with self.taken:
            self.taken.notify_all()

    async def wait_for(self, count: int) -> None:
        async with self.taken:
            await asyncio.wait_for(self.taken.wait_for(lambda: len(self.waiting) >= count), LONG_S)

    def answer(self, number: int, error: FlushFailedError | None = None) -> None:
        """Answer the batch that was taken as number *number*."""
        batch = batch_of(b"a", topic=self.waiting[number][0].request.topic)
        batch.error = error
        self.waiting[number][1](batch)


def stream_of(writer: Writer, *, max_in_flight_bytes: int = 1 << 20) -> AppendStreamCall:
    def respond(batch: Batch) -> AppendBatchResponse:
        return AppendBatchResponse(stored_topic=batch.key.topic)

    return AppendStreamCall(writer.submit, respond, max_in_flight_bytes=max_in_flight_bytes)


async def requests_of(*topics: str, is_open: asyncio.Event | None = None) -> AsyncIterator[AppendStreamRequest]:
    """One request a topic, with its number as correlation id; the stream stays open until *is_open* is set."""
    for number, topic in enumerate(topics):
        entry = AppendStreamRequest.Entry(
            correlation_id=number, batch=AppendBatchRequest(topic=topic, packed=b"x" * 1000)
        )
        yield AppendStreamRequest(batches=[entry])
    if is_open is not None:
        await is_open.wait()


async def results(responses: AsyncIterator[AppendStreamResponse]) -> list[AppendStreamResponse.Result]:
    async with asyncio.timeout(LONG_S):
        return [result async for response in responses for result in response.results]


def test_each_batch_is_answered_with_its_correlation_id_in_completion_order() -> None:
    async def run() -> None:
        writer = Writer()
        answers = asyncio.create_task(results(stream_of(writer).run(requests_of("a", "b"))))
        await writer.wait_for(2)
        writer.answer(1)
        writer.answer(0)
        found = [(result.correlation_id, result.appended.stored_topic) for result in await answers]
        assert found == [(1, "b"), (0, "a")]

    asyncio.run(run())


def test_a_refused_batch_is_an_answer_and_the_stream_continues() -> None:
    async def run() -> None:
        writer = Writer()
        answers = asyncio.create_task(results(stream_of(writer).run(requests_of("refused", "b"))))
        await writer.wait_for(1)
        writer.answer(0, FlushFailedError("the disk"))
        reasons = []
        for result in await answers:
            info = error_details_pb2.ErrorInfo()
            assert result.error.details[0].Unpack(info)
            reasons.append((result.correlation_id, info.reason))
        assert reasons == [(0, "QUEUE_ID_ILLEGAL"), (1, "FLUSH_FAILED")]

    asyncio.run(run())


def test_the_stream_stops_reading_at_the_in_flight_limit() -> None:
    async def run() -> None:
        writer = Writer()
        stream = stream_of(writer, max_in_flight_bytes=1500)
        answers = asyncio.create_task(results(stream.run(requests_of("a", "b", "c"))))
        await writer.wait_for(2)
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(writer.waiting) == 2
        writer.answer(0)
        await writer.wait_for(3)
        writer.answer(1)
        writer.answer(2)
        assert len(await answers) == 3

    asyncio.run(run())


def test_a_closed_stream_ends_after_its_last_answer() -> None:
    async def run() -> None:
        writer, is_open = Writer(), asyncio.Event()
        stream = stream_of(writer)
        answers = asyncio.create_task(results(stream.run(requests_of("a", is_open=is_open))))
        await writer.wait_for(1)
        stream.close()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not answers.done()
        writer.answer(0)
        assert len(await answers) == 1

    asyncio.run(run())


def test_a_bug_ends_the_stream_with_its_error() -> None:
    async def run() -> None:
        with pytest.raises(RuntimeError, match="a bug"):
            await results(stream_of(Writer()).run(requests_of("bug", is_open=asyncio.Event())))

    asyncio.run(run())
