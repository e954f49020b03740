"""TopicService: the gRPC service for the administration of topics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

from tidemark.access.right import KNOWN_ACTIONS, on_topic
from tidemark.store.originals.topics import TopicConfig
from tidemark.v1 import topics_pb2 as pb
from tidemark.v1.topics_pb2_grpc import TopicServiceServicer

from ..batch.batch import QueueKey
from ..log.commit_log import CommitLog
from ..log.queue_offsets import QueueOffsets
from ..topics.topic_table import Alteration, TopicTable
from .access_interceptor import CALLER

_Context = grpc.aio.ServicerContext[Any, Any]


def _message(config: TopicConfig) -> pb.Topic:
    return pb.Topic(
        name=config.name,
        read_queue_count=config.read_queues,
        write_queue_count=config.write_queues,
        permission=config.permission,
        attributes=dict(config.attributes),
    )


class TopicService(TopicServiceServicer):
    """Converts between protobuf messages and TopicTable. ErrorInterceptor turns raised errors into gRPC statuses."""

    def __init__(
        self,
        topics: TopicTable,
        offsets: QueueOffsets,
        commit_log: CommitLog,
        *,
        store_name: str,
        address: str,
        remoting_address: Callable[[], str] = lambda: "",
    ) -> None:
        self._topics = topics
        self._offsets = offsets
        self._commit_log = commit_log
        self._store_name = store_name
        self._address = address
        self._remoting_address = remoting_address

    async def CreateTopic(  # noqa: N802 - gRPC's name
        self, request: pb.CreateTopicRequest, context: _Context
    ) -> pb.CreateTopicResponse:
        config, created = await self._topics.create(
            request.name, queues=request.queue_count, attributes=dict(request.attributes)
        )
        return pb.CreateTopicResponse(topic=_message(config), created=created)

    async def DescribeTopic(  # noqa: N802
        self, request: pb.DescribeTopicRequest, context: _Context
    ) -> pb.DescribeTopicResponse:
        config = self._topics.require(request.name)
        queues = [
            pb.DescribeTopicResponse.Queue(
                queue_id=queue_id, next_queue_offset=self._offsets.next(QueueKey(config.name, queue_id))
            )
            for queue_id in range(config.queues)
        ]
        return pb.DescribeTopicResponse(topic=_message(config), queues=queues)

    async def ListTopics(  # noqa: N802
        self, request: pb.ListTopicsRequest, context: _Context
    ) -> pb.ListTopicsResponse:
        caller = CALLER.get()
        known = [config for config in self._topics.all() if caller.may(on_topic(config.name, *KNOWN_ACTIONS))]
        return pb.ListTopicsResponse(topics=[_message(config) for config in known])

    async def AlterTopic(  # noqa: N802
        self, request: pb.AlterTopicRequest, context: _Context
    ) -> pb.AlterTopicResponse:
        alteration = Alteration(
            request.read_queue_count if request.HasField("read_queue_count") else None,
            request.write_queue_count if request.HasField("write_queue_count") else None,
            request.permission if request.HasField("permission") else None,
            dict(request.attributes),
        )
        return pb.AlterTopicResponse(topic=_message(await self._topics.alter(request.name, alteration)))

    async def DeleteTopic(  # noqa: N802
        self, request: pb.DeleteTopicRequest, context: _Context
    ) -> pb.DeleteTopicResponse:
        await self._topics.delete(request.name, lambda: self._take_ends(request.name))
        return pb.DeleteTopicResponse()

    async def _take_ends(self, topic: str) -> tuple[int, dict[int, int]]:
        """Return the log's end and the topic's next offsets, after all batches submitted before."""
        loop = asyncio.get_running_loop()
        taken: asyncio.Future[tuple[int, dict[int, int]]] = loop.create_future()

        def take() -> None:
            ends = (self._commit_log.end_offset, self._offsets.of_topic(topic))
            loop.call_soon_threadsafe(lambda: taken.done() or taken.set_result(ends))  # type: ignore[func-returns-value]

        self._commit_log.between(take)
        self._commit_log.watch(taken)
        return await taken

    async def GetRoute(  # noqa: N802
        self, request: pb.GetRouteRequest, context: _Context
    ) -> pb.GetRouteResponse:
        topic = self._topics.expect(request.name)
        return pb.GetRouteResponse(
            store_name=self._store_name,
            address=self._address,
            topic=_message(topic.config),
            would_create=self._topics.get(request.name) is None,
            remoting_address=self._remoting_address(),
        )
