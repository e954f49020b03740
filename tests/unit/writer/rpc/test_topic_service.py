from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from services.writer.rpc.topic_service import TopicService
from tests.unit.writer.batches import batch_of
from tests.unit.writer.opened_log import LONG_S, OpenedLog, SyncGate, opened_log
from tests.unit.writer.rpc.callers import call_as_anyone, call_with_rights
from tidemark.errors import FlushFailedError, TopicNotFoundError
from tidemark.store.originals.tombstones import load_tombstones
from tidemark.v1 import topics_pb2 as pb

NO_CONTEXT: Any = None  # the methods do not use the call's context


@asynccontextmanager
async def served_topics(root: Path, disk: SyncGate | None = None) -> AsyncIterator[tuple[TopicService, OpenedLog]]:
    async with opened_log(root, disk) as opened:
        offsets = opened.store.recovered.offsets
        yield (
            TopicService(opened.topics, offsets, opened.log, store_name="store-7", address="10.0.0.9:8081"),
            opened,
        )


async def create(service: TopicService, name: str, **fields: Any) -> pb.CreateTopicResponse:
    return await service.CreateTopic(pb.CreateTopicRequest(name=name, **fields), NO_CONTEXT)


def next_offsets(described: pb.DescribeTopicResponse) -> list[tuple[int, int]]:
    return [(queue.queue_id, queue.next_queue_offset) for queue in described.queues]


def test_created_topic_is_answered_in_its_shape_and_once_as_new(tmp_path: Path) -> None:
    async def run() -> None:
        async with served_topics(tmp_path) as (service, _):
            first = await create(service, "orders", queue_count=2, attributes={"+queue.type": "BatchCQ"})
            again = await create(service, "orders", queue_count=2, attributes={"+queue.type": "BatchCQ"})
            assert (first.created, again.created) == (True, False)
            topic = first.topic
            assert (topic.name, topic.read_queue_count, topic.write_queue_count, topic.permission) == (
                "orders",
                2,
                2,
                6,
            )
            assert dict(topic.attributes) == {"queue.type": "BatchCQ"}
            assert again.topic == topic

    asyncio.run(run())


def test_described_topic_has_the_next_offset_of_every_queue_that_is_read_or_written(tmp_path: Path) -> None:
    async def run() -> None:
        async with served_topics(tmp_path) as (service, opened):
            await create(service, "orders", queue_count=3)
            await service.AlterTopic(pb.AlterTopicRequest(name="orders", write_queue_count=1), NO_CONTEXT)
            await opened.append(batch_of(b"a", b"b"), batch_of(b"c", queue_id=2), batch_of(b"d", topic="other"))
            described = await service.DescribeTopic(pb.DescribeTopicRequest(name="orders"), NO_CONTEXT)
            assert next_offsets(described) == [(0, 2), (1, 0), (2, 1)]

    asyncio.run(run())


def test_alteration_leaves_absent_fields_and_sets_a_permission_of_zero(tmp_path: Path) -> None:
    async def run() -> None:
        async with served_topics(tmp_path) as (service, _):
            await create(service, "orders", queue_count=3)
            request = pb.AlterTopicRequest(name="orders", read_queue_count=5)
            altered = (await service.AlterTopic(request, NO_CONTEXT)).topic
            assert (altered.read_queue_count, altered.write_queue_count, altered.permission) == (5, 3, 6)
            request = pb.AlterTopicRequest(name="orders", permission=0, attributes={"+message.type": "NORMAL"})
            altered = (await service.AlterTopic(request, NO_CONTEXT)).topic
            assert (altered.read_queue_count, altered.write_queue_count, altered.permission) == (5, 3, 0)
            assert dict(altered.attributes) == {"message.type": "NORMAL"}

    asyncio.run(run())


def test_list_has_only_topics_that_the_caller_may_know(tmp_path: Path) -> None:
    async def run() -> None:
        async with served_topics(tmp_path / "store") as (service, _):
            for name in ("orders", "bills", "secret"):
                await create(service, name)
            call_as_anyone()
            listed = await service.ListTopics(pb.ListTopicsRequest(), NO_CONTEXT)
            assert [topic.name for topic in listed.topics] == ["bills", "orders", "secret"]
            call_with_rights(tmp_path / "access", ["Pub"], "Topic:orders")
            listed = await service.ListTopics(pb.ListTopicsRequest(), NO_CONTEXT)
            assert [topic.name for topic in listed.topics] == ["orders"]

    asyncio.run(run())


def test_deletion_records_the_offsets_after_every_batch_accepted_before_it(tmp_path: Path) -> None:
    """The batches are not answered yet; a topic that is created again continues at these offsets."""

    async def run() -> None:
        async with served_topics(tmp_path) as (service, opened):
            await create(service, "orders", queue_count=2)
            accepted = [opened.submit(batch_of(b"a", b"b", queue_id=queue_id)) for queue_id in (0, 1, 1)]
            await service.DeleteTopic(pb.DeleteTopicRequest(name="orders"), NO_CONTEXT)
            batches = await asyncio.gather(*accepted)
            ends = [batch.appended.end_offset for batch in batches if batch.appended is not None]
            (stone,) = load_tombstones(opened.store.paths.tombstones)
            assert (stone.topic, stone.physical_offset, dict(stone.next_offsets)) == ("orders", max(ends), {0: 2, 1: 4})
            with pytest.raises(TopicNotFoundError):
                await service.DescribeTopic(pb.DescribeTopicRequest(name="orders"), NO_CONTEXT)
            await create(service, "orders", queue_count=2)
            described = await service.DescribeTopic(pb.DescribeTopicRequest(name="orders"), NO_CONTEXT)
            assert next_offsets(described) == [(0, 2), (1, 4)]

    asyncio.run(run())


def test_deletion_fails_and_the_topic_stays_if_the_log_has_failed(tmp_path: Path) -> None:
    async def run() -> None:
        disk = SyncGate()
        async with served_topics(tmp_path, disk) as (service, opened):
            await create(service, "orders")
            disk.fails = True
            await opened.append(batch_of(b"a"))
            deletion = service.DeleteTopic(pb.DeleteTopicRequest(name="orders"), NO_CONTEXT)
            with pytest.raises(FlushFailedError):
                await asyncio.wait_for(deletion, LONG_S)
            described = await service.DescribeTopic(pb.DescribeTopicRequest(name="orders"), NO_CONTEXT)
            assert described.topic.name == "orders"
            assert load_tombstones(opened.store.paths.tombstones) == []

    asyncio.run(run())


def test_route_names_the_writer_and_the_shape_that_an_append_would_create(tmp_path: Path) -> None:
    async def run() -> None:
        async with served_topics(tmp_path) as (service, opened):
            route = await service.GetRoute(pb.GetRouteRequest(name="orders"), NO_CONTEXT)
            assert (route.store_name, route.address, route.would_create) == ("store-7", "10.0.0.9:8081", True)
            assert (route.topic.write_queue_count, route.topic.permission) == (4, 6)
            assert opened.topics.get("orders") is None, "to ask creates no topic"
            await create(service, "orders", queue_count=2)
            route = await service.GetRoute(pb.GetRouteRequest(name="orders"), NO_CONTEXT)
            assert (route.would_create, route.topic.write_queue_count) == (False, 2)

    asyncio.run(run())
