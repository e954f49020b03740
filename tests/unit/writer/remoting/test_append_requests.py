from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from google.rpc import error_details_pb2, status_pb2

from services.writer.admission.append_request import Received
from services.writer.batch.batch import Batch
from services.writer.remoting.append_requests import AppendRequests
from services.writer.submission.answers import fill_response
from services.writer.submission.batch_submitter import Sender
from tests.builders import BORN_HOST, STORE_HOST
from tests.unit.writer.batches import batch_of
from tests.unit.writer.rpc.log_service import ONE, TWO, Service, run
from tidemark.access.guard import Guard
from tidemark.access.identity import Presented
from tidemark.access.rate_limits import RateLimits
from tidemark.errors import ArgumentIllegalError, FlushFailedError, QueueIllegalError
from tidemark.remoting.codes import ResponseCode, TidemarkCode
from tidemark.remoting.frame import request
from tidemark.remoting.framing import decode
from tidemark.remoting_server.exchange import Exchange
from tidemark.v1.commit_log_pb2 import (
    AppendBatchRequest,
    AppendBatchResponse,
    AppendStreamRequest,
    AppendStreamResponse,
)

LONG_S = 20.0
Result = AppendStreamResponse.Result
Answer = Callable[[Batch], None]


class Connection:
    """A client's connection, which keeps the answers. results: of each answer, in the order of the answers."""

    host = BORN_HOST

    def __init__(self) -> None:
        self.results: list[list[Result]] = []
        self._finished = asyncio.Event()

    def finish(self, request_code: int, response_code: int, data: tuple[bytes]) -> None:
        assert (request_code, response_code) == (TidemarkCode.APPEND, ResponseCode.SUCCESS)
        body = bytes(decode(data[0]).body)
        self.results.append(list(AppendStreamResponse.FromString(body).results))
        self._finished.set()

    async def wait_for(self, count: int) -> None:
        """Wait for *count* answers."""
        while len(self.results) < count:
            self._finished.clear()
            await self._finished.wait()

    @property
    def numbers(self) -> list[list[int]]:
        return [[result.correlation_id for result in results] for results in self.results]


class Submitter:
    """Takes batches, keeps their answers, and refuses those of topic "refused". One of topic "new" waits for `create`.

    topics: of the submitted batches, in the order in which they were submitted.
    """

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.answers: list[Answer] = []
        self.create = asyncio.Event()

    def submit_now(self, sender: Sender, received: Received, answer: Answer) -> Coroutine[Any, Any, None] | None:
        topic = received.request.topic
        if topic == "refused":
            raise QueueIllegalError("no such queue", queue_id=9, queues=4)
        if topic.startswith("new"):
            return self._wait(topic, answer)
        self._submit(topic, answer)
        return None

    async def _wait(self, topic: str, answer: Answer) -> None:
        await self.create.wait()
        if topic == "new refused":
            raise QueueIllegalError("no such queue", queue_id=9, queues=4)
        self._submit(topic, answer)

    def _submit(self, topic: str, answer: Answer) -> None:
        self.topics.append(topic)
        self.answers.append(answer)

    def answer(self, number: int, error: FlushFailedError | None = None) -> None:
        batch = batch_of(b"a", topic=self.topics[number])
        batch.error = error
        self.answers[number](batch)


def respond(response: AppendBatchResponse, batch: Batch) -> None:
    response.stored_topic = batch.key.topic


def handling(
    submitter: Any, respond: Callable[[AppendBatchResponse, Batch], None] = respond
) -> Callable[[Exchange], Any]:
    return AppendRequests(submitter, respond).handlers()[TidemarkCode.APPEND]


def exchange(connection: Any, body: bytes) -> Exchange:
    guard = Guard(None, RateLimits(), None)
    caller = guard.caller(Presented(None, None), address="", action="")
    return Exchange(connection, request(TidemarkCode.APPEND, {}, body, opaque=1), caller)


def frame(connection: Any, *batches: AppendBatchRequest | str, start: int = 0) -> Exchange:
    """Return a request with these batches, or with one batch a topic; correlation ids from *start* on."""
    entries = [
        AppendStreamRequest.Entry(
            correlation_id=number, batch=AppendBatchRequest(topic=one, packed=ONE) if isinstance(one, str) else one
        )
        for number, one in enumerate(batches, start)
    ]
    return exchange(connection, AppendStreamRequest(batches=entries).SerializeToString())


def reason_of(status: status_pb2.Status) -> str:
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    reason: str = info.reason
    return reason


def test_a_request_is_answered_when_all_its_batches_are() -> None:
    async def main() -> None:
        submitter, connection = Submitter(), Connection()
        assert handling(submitter)(frame(connection, "a", "refused", "b", start=7)) is None
        submitter.answer(1, FlushFailedError("the disk"))
        assert connection.results == []
        submitter.answer(0)
        (results,) = connection.results
        found = {one.correlation_id: one for one in results}
        assert {number: reason_of(found[number].error) for number in (8, 9)} == {
            8: "QUEUE_ID_ILLEGAL",
            9: "FLUSH_FAILED",
        }
        assert found[7].appended.stored_topic == "a"

    asyncio.run(main())


def test_a_request_without_batches_is_answered_at_once() -> None:
    connection = Connection()
    assert handling(None)(frame(connection)) is None
    assert connection.results == [[]]


def test_a_body_that_is_no_message_is_refused() -> None:
    with pytest.raises(ArgumentIllegalError):
        handling(None)(exchange(Connection(), b"\xff\xff"))


def test_batches_behind_one_that_waits_keep_their_order_within_a_connection() -> None:
    """A batch waits for the creation of its topic, as on a gRPC stream; other connections do not wait."""

    async def main() -> None:
        submitter, connection, other = Submitter(), Connection(), Connection()
        handle = handling(submitter)
        rest = handle(frame(connection, "first", "new", "second", "new refused"))
        working = asyncio.create_task(rest)
        await asyncio.sleep(0)
        assert handle(frame(connection, "third", "refused", start=4)) is None
        assert handle(frame(other, "other")) is None
        assert submitter.topics == ["first", "other"]
        submitter.create.set()
        await asyncio.wait_for(working, LONG_S)
        assert submitter.topics == ["first", "other", "new", "second", "third"]
        assert handle(frame(connection, "fourth", start=6)) is None
        assert submitter.topics[-1] == "fourth"
        for number in range(len(submitter.topics)):
            submitter.answer(number)
        assert [sorted(numbers) for numbers in connection.numbers] == [[0, 1, 2, 3], [4, 5], [6]]

    asyncio.run(main())


def test_a_connection_that_ends_while_a_batch_waits_is_forgotten() -> None:
    async def main() -> None:
        submitter, connection = Submitter(), Connection()
        handle = handling(submitter)
        working = asyncio.create_task(handle(frame(connection, "new", "behind")))
        await asyncio.sleep(0)
        working.cancel()
        await asyncio.wait([working])
        assert working.cancelled()
        assert submitter.topics == []
        assert handle(frame(connection, "again")) is None
        assert submitter.topics == ["again"]

    asyncio.run(main())


def test_the_first_batches_of_a_new_topic_are_stored_in_the_order_of_their_requests(tmp_path: Path) -> None:
    """The results are those of gRPC: the same places, and the same refusals."""

    async def scenario(service: Service) -> None:
        connection, submitter = Connection(), service.rpc._submitter
        handle = handling(
            submitter, lambda response, batch: fill_response(response, batch, store_host=STORE_HOST, term=3)
        )
        batches = [AppendBatchRequest(topic="t", queue_id=0, packed=packed) for packed in (ONE, TWO, ONE)]
        rests = [handle(frame(connection, one, start=number)) for number, one in enumerate(batches)]
        rests.append(handle(frame(connection, AppendBatchRequest(topic="t", queue_id=99, packed=ONE), start=3)))
        async with asyncio.timeout(LONG_S):
            await asyncio.gather(*(rest for rest in rests if rest is not None))
            await connection.wait_for(4)
        found = {one.correlation_id: one for results in connection.results for one in results}
        places = [found[number].appended for number in range(3)]
        assert [(one.queue_offset, one.message_count, one.term) for one in places] == [(0, 1, 3), (1, 2, 3), (3, 1, 3)]
        assert reason_of(found[3].error) == "QUEUE_ID_ILLEGAL"

    run(scenario, tmp_path)
