"""Requests of RocketMQ's consumers, and the records that they should get: cut from the log with struct alone."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from tests.builders import MAGIC_BLANK
from tests.remoting_client import RemotingClient
from tidemark.remoting import Frame, RequestCode
from tidemark.remoting.groups import BrokerQueue, QueueLock, parse_consumer_list, parse_locked_queues, queue_lock_body
from tidemark.remoting.heartbeats import ConsumerData, ConsumeType, HeartbeatData, MessageModel, SubscriptionData
from tidemark.remoting.heartbeats import heartbeat_body as body_of
from tidemark.remoting.pulling import PullFlag

OWN = int(PullFlag.SUBSCRIPTION)  # the pull has a subscription of its own
SUSPEND = int(PullFlag.SUSPEND)
COMMIT = int(PullFlag.COMMIT_OFFSET)


# -- pulls ----------------------------------------------------------------------------------------------------------


def pull_fields(offset: int, **changed: object) -> dict[str, str]:
    """Return the fields of a pull of `orders`, queue 0, for group g, with a subscription of all in the request."""
    fields: dict[str, object] = {
        "consumerGroup": "g",
        "topic": "orders",
        "queueId": 0,
        "queueOffset": offset,
        "maxMsgNums": 32,
        "sysFlag": OWN,
        "commitOffset": 0,
        "suspendTimeoutMillis": 0,
        "subscription": "*",
        "subVersion": 0,
        "expressionType": "TAG",
    }
    return {name: str(value) for name, value in {**fields, **changed}.items()}


def pull(client: RemotingClient, offset: int, **changed: object) -> Frame:
    """Return the answer to a pull."""
    return client.call(RequestCode.PULL_MESSAGE, pull_fields(offset, **changed))


def hold(client: RemotingClient, offset: int, *, wait_ms: int = 25_000, **changed: object) -> int:
    """Send a pull that may wait, and return its opaque number."""
    fields = pull_fields(offset, **{"sysFlag": OWN | SUSPEND, "suspendTimeoutMillis": wait_ms, **changed})
    return client.send(RequestCode.PULL_MESSAGE, fields)


def outcome(answer: Frame) -> tuple[int, int, int, int]:
    """Return code, nextBeginOffset, minOffset and maxOffset. Clients need these fields in each answer to a pull."""
    assert answer.fields["suggestWhichBrokerId"] == "0"
    following, least, end = (int(answer.fields[name]) for name in ("nextBeginOffset", "minOffset", "maxOffset"))
    return answer.code, following, least, end


# -- records --------------------------------------------------------------------------------------------------------


def log_records(root: Path) -> Iterator[tuple[int, bytes]]:
    """Yield physical offset and bytes of each record of the log."""
    for path in sorted((root / "commitlog").iterdir()):
        data, at = path.read_bytes(), 0
        while at + 8 <= len(data):
            size, magic = struct.unpack_from(">ii", data, at)
            if size == 0 or magic == MAGIC_BLANK:
                break
            yield int(path.name) + at, data[at : at + size]
            at += size


def topic_of(record: bytes) -> str:
    """Return the topic of a record of version 1 with IPv4 hosts."""
    (body_size,) = struct.unpack_from(">i", record, 84)
    at = 88 + body_size
    return record[at + 1 : at + 1 + record[at]].decode()


def stored(root: Path, topic: str, queue_id: int = 0) -> dict[int, bytes]:
    """Return the records of a queue by queue offset."""
    return {
        int.from_bytes(record[20:28], "big"): record
        for _, record in log_records(root)
        if topic_of(record) == topic and int.from_bytes(record[12:16], "big") == queue_id
    }


# -- groups ---------------------------------------------------------------------------------------------------------


def heartbeat(client: RemotingClient, client_id: str, group: str = "g", **tags: str) -> Frame:
    """Send a heartbeat of a push consumer; tags: expression by topic, by default all of `orders`."""
    subscriptions = tuple(SubscriptionData(topic, text, 1) for topic, text in (tags or {"orders": "*"}).items())
    consumer = ConsumerData(group, ConsumeType.CONSUME_PASSIVELY, MessageModel.CLUSTERING, "", subscriptions)
    return client.call(RequestCode.HEART_BEAT, {}, body_of(HeartbeatData(client_id, (), (consumer,))))


def members(client: RemotingClient, group: str = "g") -> list[str] | None:
    """Return the members of the group; None if the service does not list them."""
    answer = client.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
    return sorted(parse_consumer_list(answer.body)) if answer.code == 0 else None


def lock(client: RemotingClient, client_id: str, *queue_ids: int, group: str = "g") -> list[int]:
    """Lock queues of `orders`; return those that were granted."""
    queues = tuple(BrokerQueue("tidemark-0-r", queue_id, "orders") for queue_id in queue_ids)
    answer = client.call(RequestCode.LOCK_BATCH_MQ, {}, queue_lock_body(QueueLock(client_id, group, queues)))
    assert answer.code == 0, answer.remark
    return [queue.queue_id for queue in parse_locked_queues(answer.body)]


# -- offsets --------------------------------------------------------------------------------------------------------


def commit_fields(offset: int, **changed: object) -> dict[str, str]:
    """Return the fields of a commit for group g in `orders`, queue 0."""
    fields = {"consumerGroup": "g", "topic": "orders", "queueId": 0, "commitOffset": offset, **changed}
    return {name: str(value) for name, value in fields.items()}


def group_offset(client: RemotingClient, **changed: object) -> tuple[int, int | None]:
    """Return the code and the group's offset."""
    fields = {"consumerGroup": "g", "topic": "orders", "queueId": 0, **changed}
    answer = client.call(RequestCode.QUERY_CONSUMER_OFFSET, {name: str(value) for name, value in fields.items()})
    return answer.code, int(answer.fields["offset"]) if "offset" in answer.fields else None
