from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from google.rpc import status_pb2

from services.indexer.query.schema.request_bodies import AppendBody, RetriedMessage, RetryBody, TopicBody
from services.indexer.query.state.writer_client import SentBackMessage, WriterForward
from tests.builders import STORE_HOST
from tests.fixed_ports import fixed_port
from tests.unit.client.fake_writer import FakeWriter, refusal
from tidemark.errors import NextOffsetMismatchError, WriterUnreachableError
from tidemark.tls.credentials import Credentials
from tidemark.v1 import commit_log_pb2, topics_pb2

CALLER = "Bearer of-the-caller"


class Writer(FakeWriter):
    """Keeps the requests that are forwarded to it, and the metadata of each."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Any] = []
        self.metadata: list[dict[str, Any]] = []
        self.put_status = commit_log_pb2.PUT_STATUS_PUT_OK
        self.refusal: status_pb2.Status | None = None
        self.refusals = 1 << 30  # number of requests to refuse

    def _keep(self, request: Any, context: grpc.ServicerContext) -> None:
        self.requests.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        if self.refusal is not None and len(self.requests) <= self.refusals:
            context.set_trailing_metadata((("grpc-status-details-bin", self.refusal.SerializeToString()),))
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, self.refusal.message)

    def _stored(self) -> commit_log_pb2.AppendBatchResponse:
        return commit_log_pb2.AppendBatchResponse(
            status=self.put_status,
            queue_offset=41,
            message_count=2,
            store_host=STORE_HOST,
            physical_offsets=(100).to_bytes(8, "big") + (200).to_bytes(8, "big"),
        )

    def AppendBatch(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        self._keep(request, context)
        return self._stored()

    def SendBack(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        self._keep(request, context)
        return commit_log_pb2.SendBackResponse(topic="%RETRY%g", appended=self._stored())

    def CreateTopic(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        self._keep(request, context)
        topic = topics_pb2.Topic(name=request.name, read_queue_count=3, write_queue_count=3, permission=6)
        return topics_pb2.CreateTopicResponse(created=True, topic=topic)


@pytest.fixture
def writer() -> Iterator[Writer]:
    served = Writer()
    served.start()
    yield served
    served.stop()


def forward(address: str | None, call: Callable[[WriterForward], Any]) -> Any:
    """Return the outcome of *call* with a client of the writer at *address*."""

    async def run() -> Any:
        client = WriterForward(address, timeout_ms=20_000, credentials=Credentials())
        try:
            return await call(client)
        finally:
            await client.close()

    return asyncio.run(run())


def append(address: str | None, *, authorization: str | None = CALLER, **body: Any) -> tuple[bool, dict[str, Any]]:
    content = AppendBody.model_validate({"messages": [{"body": "a", "keys": ["k"], "tag": "A"}], **body})
    answer: tuple[bool, dict[str, Any]] = forward(
        address, lambda client: client.append("orders", content, "once", authorization=authorization)
    )
    return answer


def test_a_batch_reaches_the_writer_as_it_was_sent(writer: Writer) -> None:
    append(writer.address, queue_id=0, expected_next_offset=7)
    (request,) = writer.requests
    (message,) = request.messages.messages
    assert (request.topic, request.request_id, request.queue_id, request.expected_next_offset) == (
        "orders",
        "once",
        0,
        7,
    )
    assert (message.body, message.tag, list(message.keys)) == (b"a", "A", ["k"])


def test_unset_fields_of_a_batch_are_not_sent(writer: Writer) -> None:
    """Queue 0 and no queue are different."""
    append(writer.address)
    (request,) = writer.requests
    assert (request.HasField("queue_id"), request.HasField("expected_next_offset")) == (False, False)


def test_the_answer_has_the_ids_of_the_messages(writer: Writer) -> None:
    is_flushed, answer = append(writer.address)
    assert (is_flushed, answer["status"], answer["next_offset"]) == (True, "PUT_OK", 43)
    assert answer["physical_offsets"] == [100, 200]
    expected = [(STORE_HOST + offset.to_bytes(8, "big")).hex().upper() for offset in (100, 200)]
    assert answer["offset_msg_ids"] == expected


def test_an_unconfirmed_flush_is_not_an_acknowledgement(writer: Writer) -> None:
    writer.put_status = commit_log_pb2.PUT_STATUS_FLUSH_DISK_TIMEOUT
    is_flushed, answer = append(writer.address)
    assert (is_flushed, answer["status"]) == (False, "FLUSH_DISK_TIMEOUT")


@pytest.mark.parametrize("authorization", [CALLER, None])
def test_the_writer_sees_the_authorization_of_the_caller(writer: Writer, authorization: str | None) -> None:
    append(writer.address, authorization=authorization)
    assert writer.metadata[0].get("authorization") == authorization


def test_a_refusal_of_the_writer_is_raised_by_its_reason(writer: Writer) -> None:
    writer.refusal = refusal("NEXT_OFFSET_MISMATCH", {"next_offset": "15"})
    with pytest.raises(NextOffsetMismatchError):
        append(writer.address)


def test_the_member_that_writes_gets_the_calls_of_a_group(writer: Writer) -> None:
    replica = Writer()
    replica.refusal = refusal("NOT_LEADER")
    replica.start()
    try:
        append(f"127.0.0.1:{fixed_port()}|{replica.address}|{writer.address}")
    finally:
        replica.stop()
    assert (len(replica.requests), len(writer.requests)) == (1, 1)


def test_a_new_writer_is_asked_until_it_has_enough_replicas(writer: Writer) -> None:
    """Nothing was stored, so that even a message that must not be sent back twice is sent again."""
    writer.refusal, writer.refusals = refusal("IN_SYNC_REPLICAS_NOT_ENOUGH"), 3
    message = SentBackMessage("orders", 0, 7, 100, None)
    answer = forward(
        f"{writer.address}|127.0.0.1:{fixed_port()}",
        lambda client: client.send_back("g", message, delay_level=3, max_reconsume_times=None, authorization=None),
    )
    assert (answer["topic"], len(writer.requests)) == ("%RETRY%g", 4)


def test_a_message_is_not_sent_back_twice_to_a_group(writer: Writer) -> None:
    """Without an answer it may be stored, and a repeat would be another message."""
    message = SentBackMessage("orders", 0, 7, 100, None)

    async def send_back_twice(client: WriterForward) -> Any:
        with pytest.raises(WriterUnreachableError):
            await client.send_back("g", message, delay_level=3, max_reconsume_times=None, authorization=None)
        return await client.send_back("g", message, delay_level=3, max_reconsume_times=None, authorization=None)

    answer = forward(f"127.0.0.1:{fixed_port()}|{writer.address}", send_back_twice)
    assert answer["topic"] == "%RETRY%g", "the next call asks the next member"


@pytest.mark.parametrize("is_configured", [False, True])
def test_a_call_without_a_writer_raises_writer_unreachable(writer: Writer, is_configured: bool) -> None:
    writer.stop()
    with pytest.raises(WriterUnreachableError):
        append(writer.address if is_configured else None)


@pytest.mark.parametrize("inner_index", [None, 0, 2])
def test_a_message_is_sent_back_by_its_physical_offset(writer: Writer, inner_index: int | None) -> None:
    body = RetryBody(messages=[RetriedMessage(message_id="0A")], delay_level=4)
    original = SentBackMessage("orders", 1, 7, 900, inner_index)
    answer = forward(
        writer.address,
        lambda client: client.send_back(
            "g",
            original,
            delay_level=body.delay_level,
            max_reconsume_times=body.max_reconsume_times,
            authorization=None,
        ),
    )
    (request,) = writer.requests
    assert (request.group, request.topic, request.physical_offset, request.delay_level) == ("g", "orders", 900, 4)
    assert (request.inner_index if request.HasField("inner_index") else None) == inner_index
    assert (answer["topic"], answer["physical_offset"], answer["dead_letter"]) == ("%RETRY%g", 0, False)


def test_a_created_topic_is_returned_as_the_writer_reports_it(writer: Writer) -> None:
    body = TopicBody(topic="bills")
    created, topic = forward(writer.address, lambda client: client.create_topic(body, authorization=None))
    assert (created, topic.name, topic.read_queues, topic.permission) == (True, "bills", 3, 6)
    assert writer.requests[0].queue_count == 0, "the writer has its own default"
