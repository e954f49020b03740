from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.builders import STORE_HOST, properties, wire_batch
from tests.unit.writer.opened_log import LONG_S, SyncGate
from tests.unit.writer.rpc.callers import call_as_anyone, call_with_rights
from tests.unit.writer.rpc.log_service import CONTEXT, ONE, TWO, Service, run
from tidemark.errors import (
    FlushFailedError,
    ForbiddenError,
    QueueIllegalError,
    RequestConflictError,
    TopicNotFoundError,
)
from tidemark.format.host import Host, decode_host
from tidemark.format.record import decode_record
from tidemark.v1 import commit_log_pb2 as pb


def test_append_creates_its_topic_and_is_answered_with_its_place(tmp_path: Path) -> None:
    async def test(service: Service) -> None:
        first = await service.append(queue_id=2)
        second = await service.append(queue_id=2, packed=TWO)
        assert service.topics.get("orders") is not None
        assert (first.queue_id, first.queue_offset, first.message_count, first.physical_offset) == (2, 0, 1, 0)
        assert (second.queue_offset, second.message_count) == (1, 2)
        assert second.physical_offset == first.end_physical_offset
        assert (second.term, second.store_host) == (1, STORE_HOST)
        record = decode_record(await service.read(max_bytes=first.end_physical_offset))
        assert (record.body, record.topic) == (b"a", b"orders")
        assert decode_host(record.born_host) == Host("10.0.0.1", 54321), "the peer of the call"

    run(test, tmp_path)


def test_messages_that_are_given_one_by_one_are_stored_like_a_packed_batch(tmp_path: Path) -> None:
    """Also more of them than are encoded on the event loop."""

    async def test(service: Service) -> None:
        for count in (1, 1_500):
            messages = pb.MessageList(messages=[pb.Message(body=b"m", tag="A")] * count)
            request = pb.AppendBatchRequest(topic="orders", queue_id=0, messages=messages)
            answer = await service.rpc.AppendBatch(request, CONTEXT)
            assert (answer.message_count, len(answer.physical_offsets)) == (count, 8 * count)

    run(test, tmp_path)


def test_refused_append_is_counted_by_its_reason_and_stores_nothing(tmp_path: Path) -> None:
    async def test(service: Service) -> None:
        with pytest.raises(QueueIllegalError):
            await service.append(queue_id=4)
        call_with_rights(tmp_path / "access", ["Sub"], "Topic:orders")
        with pytest.raises(ForbiddenError):
            await service.append()
        assert service.refusals() == {"QUEUE_ID_ILLEGAL": 1, "FORBIDDEN": 1}
        assert (await service.info()).max_physical_offset == 0

    run(test, tmp_path / "store")


def test_append_to_a_missing_topic_is_refused_without_automatic_creation(tmp_path: Path) -> None:
    async def test(service: Service) -> None:
        with pytest.raises(TopicNotFoundError):
            await service.append()
        await service.topics.create("orders", queues=1, attributes={})
        assert (await service.append()).queue_offset == 0

    run(test, tmp_path, auto_create=False)


def test_append_follows_the_shape_that_another_caller_creates_meanwhile(tmp_path: Path) -> None:
    """The append expects a topic of single messages and waits for its creation; the other caller is first."""

    async def test(service: Service) -> None:
        creation = asyncio.create_task(service.topics.create("orders", queues=1, attributes={"queue.type": "BatchCQ"}))
        await asyncio.sleep(0)
        answer = await service.append(packed=TWO)
        assert (await creation)[1]
        assert (answer.message_count, len(answer.physical_offsets)) == (2, 8), "one record holds both messages"

    run(test, tmp_path)


def test_failed_flush_is_the_answer_of_its_append(tmp_path: Path) -> None:
    disk = SyncGate()

    async def test(service: Service) -> None:
        await service.append()
        disk.fails = True
        with pytest.raises(FlushFailedError):
            await service.append()

    run(test, tmp_path, disk=disk)


def test_delayed_message_is_passed_to_the_scheduler_once_it_is_stored(tmp_path: Path) -> None:
    """A message that the log refuses, here for its key, is not passed on."""

    async def test(service: Service) -> None:
        first, other = (wire_batch((body, properties({"DELAY": "3"}), 0)) for body in (b"first", b"other"))
        answer = await service.append(packed=first, queue_id=1, request_id="k")
        assert answer.deliver_timestamp_ms == answer.store_timestamp_ms + 10_000
        with pytest.raises(RequestConflictError):
            await service.append(packed=other, queue_id=1, request_id="k")
        (batch,) = service.delayed
        assert (batch.key.topic, batch.key.queue_id, batch.readers_topic) == ("SCHEDULE_TOPIC_XXXX", 2, "orders")
        assert batch.appended is not None

    run(test, tmp_path)


def test_retry_that_has_reached_its_limit_goes_to_the_dead_letters(tmp_path: Path) -> None:
    """Their topic is created even if clients cannot create topics."""

    async def test(service: Service) -> None:
        await service.topics.create("%RETRY%billing", queues=1, attributes={})
        assert (await service.append("%RETRY%billing", reconsume_times=2)).stored_topic == ""
        answer = await service.append("%RETRY%billing", reconsume_times=3)
        assert (answer.stored_topic, answer.queue_offset) == ("%DLQ%billing", 0)

    run(test, tmp_path, auto_create=False, max_reconsume_times=3)


def test_stream_answers_each_batch_and_refuses_one_alone(tmp_path: Path) -> None:
    async def requests() -> AsyncIterator[pb.AppendStreamRequest]:
        for number, queue_id in enumerate((0, 9, 0)):
            batch = pb.AppendBatchRequest(topic="orders", packed=ONE, queue_id=queue_id)
            yield pb.AppendStreamRequest(batches=[pb.AppendStreamRequest.Entry(correlation_id=number, batch=batch)])

    async def test(service: Service) -> None:
        async with asyncio.timeout(LONG_S):
            responses = [part async for part in service.rpc.AppendStream(requests(), CONTEXT)]
        results = {result.correlation_id: result for response in responses for result in response.results}
        assert {number: result.WhichOneof("outcome") for number, result in results.items()} == {
            0: "appended",
            1: "error",
            2: "appended",
        }
        assert results[2].appended.queue_offset == 1

    run(test, tmp_path)


def test_message_is_sent_back_only_by_a_caller_that_may_read_its_topic(tmp_path: Path) -> None:
    async def test(service: Service) -> None:
        stored = await service.append(queue_id=0)
        request = pb.SendBackRequest(group="billing", topic="orders", physical_offset=stored.physical_offset)
        call_with_rights(tmp_path / "access", ["Sub", "Pub"], "Group:billing", "Topic:other")
        with pytest.raises(ForbiddenError):
            await service.rpc.SendBack(request, CONTEXT)
        call_as_anyone()
        answer = await asyncio.wait_for(service.rpc.SendBack(request, CONTEXT), LONG_S)
        assert (answer.topic, answer.dead_letter) == ("%RETRY%billing", False)
        assert [batch.readers_topic for batch in service.delayed] == ["%RETRY%billing"]

    run(test, tmp_path / "store")
