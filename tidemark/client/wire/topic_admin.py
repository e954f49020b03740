"""Topics: create, alter, describe, list and delete topics of one writer, and get their routes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemark.client.unknown_keywords import suggests_keywords
from tidemark.client.wire.channel import default_address
from tidemark.client.wire.store_members import StoreMembers
from tidemark.tls.credentials import Credentials
from tidemark.v1 import topics_pb2
from tidemark.v1.topics_pb2_grpc import TopicServiceStub

BATCH_QUEUE = {"queue.type": "BatchCQ"}


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic. attributes: by their stored names, such as queue.type = BatchCQ."""

    name: str
    read_queues: int
    write_queues: int
    permission: int
    attributes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, topic: topics_pb2.Topic) -> Topic:
        """Return the Topic for the writer's answer."""
        return cls(
            topic.name, topic.read_queue_count, topic.write_queue_count, topic.permission, dict(topic.attributes)
        )


class Topics:
    """Topic administration. Every method raises the StoreError of the writer's reason, or WriterUnreachableError.

    address      host:port or tls://host:port, or those of a group's members, separated by |. Default:
                 TIDEMARK_WRITER_ADDRESS, then 127.0.0.1:8081
    credentials  see `Credentials`; default: from the environment
    members      existing connections to use instead
    """

    @suggests_keywords
    def __init__(
        self,
        address: str | None = None,
        *,
        timeout_s: float = 10.0,
        credentials: Credentials | None = None,
        members: StoreMembers | None = None,
    ) -> None:
        self._members = members or StoreMembers(address or default_address(), credentials)
        self._owns_members = members is None
        self._timeout_s = timeout_s

    @suggests_keywords
    def create(self, name: str, *, queues: int = 0, attributes: Mapping[str, str] | None = None) -> Topic:
        """Create a topic, or return the existing one of the same shape. queues: 0 for the writer's default."""
        request = topics_pb2.CreateTopicRequest(name=name, queue_count=queues, attributes=attributes or {})
        return Topic.of(self._call("CreateTopic", request).topic)

    @suggests_keywords
    def alter(
        self,
        name: str,
        *,
        read_queues: int | None = None,
        write_queues: int | None = None,
        permission: int | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> Topic:
        """Change a topic and return its new state, which is durable; arguments that are not given change nothing.

        read_queues, write_queues  1 to 1024; messages in queues beyond read_queues stay stored, but are not read
        permission                 bits: 4 read, 2 write, 1 inherit
        attributes                 {"+message.type": "NORMAL"} sets, {"-message.type": ""} removes an attribute
        """
        request = topics_pb2.AlterTopicRequest(
            name=name,
            read_queue_count=read_queues,
            write_queue_count=write_queues,
            permission=permission,
            attributes=attributes or {},
        )
        return Topic.of(self._call("AlterTopic", request).topic)

    def describe(self, name: str) -> tuple[Topic, dict[int, int]]:
        """Return the topic, and a mapping from queue id to the queue offset of the next append."""
        answer = self._call("DescribeTopic", topics_pb2.DescribeTopicRequest(name=name))
        return Topic.of(answer.topic), {queue.queue_id: queue.next_queue_offset for queue in answer.queues}

    def list_all(self) -> list[Topic]:
        """Return all topics."""
        return [Topic.of(topic) for topic in self._call("ListTopics", topics_pb2.ListTopicsRequest()).topics]

    def delete(self, name: str) -> None:
        """Delete a topic; queue offsets of its name are never used again."""
        self._call("DeleteTopic", topics_pb2.DeleteTopicRequest(name=name))

    def route(self, name: str) -> Topic:
        """Return the topic that an append would find or create."""
        return Topic.of(self._call("GetRoute", topics_pb2.GetRouteRequest(name=name)).topic)

    def _call(self, method: str, request: Any) -> Any:
        return self._members.call(
            lambda channel: getattr(TopicServiceStub(channel), method), request, timeout_s=self._timeout_s
        )

    def close(self) -> None:
        """Close the connections, unless the caller gave them."""
        if self._owns_members:
            self._members.close()

    def __enter__(self) -> Topics:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
