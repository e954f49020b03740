"""Topic administration: shapes, attributes, routes, deletion and continued numbering."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from services.writer.topics.topic_table import TopicTable
from tests.builders import wire_batch
from tidemark.format.sys_flag import SysFlag
from tidemark.store.originals.topics import TopicConfig, save_topics
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage
from tidemark.v1 import topics_pb2 as pb

from .harness import RunningWriter, refusal_of

pytestmark = pytest.mark.integration

ONE = wire_batch((b"x", b"", 0))


def create(writer: RunningWriter, name: str, queue_count: int = 0, **attributes: str) -> pb.CreateTopicResponse:
    fields = {key.replace("_", "."): value for key, value in attributes.items()}
    answer: pb.CreateTopicResponse = writer.topics.CreateTopic(
        pb.CreateTopicRequest(name=name, queue_count=queue_count, attributes=fields)
    )
    return answer


def test_created_topic_is_in_rocketmqs_file(writer: RunningWriter) -> None:
    """config/topics.json has it, with queue counts, permission and attributes, before the answer."""
    answer = create(writer, "orders", 6, queue_type="BatchCQ")
    entry = orjson.loads((writer.root / "config" / "topics.json").read_bytes())["topicConfigTable"]["orders"]
    assert answer.created
    assert entry == {
        "attributes": {"queue.type": "BatchCQ"},
        "order": False,
        "perm": 6,
        "readQueueNums": 6,
        "topicFilterType": "SINGLE_TAG",
        "topicName": "orders",
        "topicSysFlag": 0,
        "writeQueueNums": 6,
    }


def test_an_existing_topic_of_the_same_shape_is_returned(writer: RunningWriter) -> None:
    """A repeated creation succeeds; another shape is ALREADY_EXISTS."""
    create(writer, "orders", 6)
    for same in (
        create(writer, "orders", 6),
        create(writer, "orders"),
        create(writer, "orders", 6, queue_type="SimpleCQ"),
    ):
        assert (same.created, same.topic.write_queue_count) == (False, 6)
    for other in ({"queue_count": 7}, {"queue_type": "BatchCQ"}):
        refusal = refusal_of(lambda other=other: create(writer, "orders", **other))
        assert (refusal.code.name, refusal.reason) == ("ALREADY_EXISTS", "TOPIC_EXISTS")


@pytest.mark.parametrize(
    ("name", "count", "attributes", "reason"),
    [
        ("a b", 0, {}, "TOPIC_ILLEGAL"),
        ("", 0, {}, "TOPIC_ILLEGAL"),
        ("SCHEDULE_TOPIC_XXXX", 0, {}, "TOPIC_FORBIDDEN"),
        ("t", -1, {}, "ARGUMENT_ILLEGAL"),
        ("t", 1025, {}, "ARGUMENT_ILLEGAL"),
        ("t", 0, {"queue.type": "TripleCQ"}, "TOPIC_ATTRIBUTE_ILLEGAL"),
        ("t", 0, {"colour": "red"}, "TOPIC_ATTRIBUTE_ILLEGAL"),
        ("t", 0, {"-queue.type": "BatchCQ"}, "TOPIC_ATTRIBUTE_ILLEGAL"),
    ],
)
def test_invalid_topics_are_refused(
    writer: RunningWriter, name: str, count: int, attributes: dict[str, str], reason: str
) -> None:
    """The error has the reason, and nothing is created."""
    request = pb.CreateTopicRequest(name=name, queue_count=count, attributes=attributes)
    assert refusal_of(lambda: writer.topics.CreateTopic(request)).reason == reason
    assert not writer.topics.ListTopics(pb.ListTopicsRequest()).topics


def test_describe_returns_the_next_offset_of_each_queue(writer: RunningWriter) -> None:
    """It is the offset of the next append."""
    create(writer, "orders", 3)
    writer.append("orders", wire_batch(*[(b"x", b"", 0)] * 5), queue_id=1)
    queues = writer.topics.DescribeTopic(pb.DescribeTopicRequest(name="orders")).queues
    assert [(queue.queue_id, queue.next_queue_offset) for queue in queues] == [(0, 0), (1, 5), (2, 0)]


def test_an_unknown_topic_is_reported(tmp_path: Path) -> None:
    """Describe, delete and, without automatic creation, route answer NOT_FOUND."""
    with RunningWriter(tmp_path, auto_create_topics=False) as writer:
        for call in (
            lambda: writer.topics.DescribeTopic(pb.DescribeTopicRequest(name="no")),
            lambda: writer.topics.DeleteTopic(pb.DeleteTopicRequest(name="no")),
            lambda: writer.topics.GetRoute(pb.GetRouteRequest(name="no")),
        ):
            refusal = refusal_of(call)
            assert (refusal.code.name, refusal.reason) == ("NOT_FOUND", "TOPIC_NOT_FOUND")


def test_route_returns_the_topic_and_whether_it_would_be_created(writer: RunningWriter) -> None:
    """It has the store's name and address, and the topic as it is or would be; the call creates nothing."""
    create(writer, "orders", 6)
    known = writer.topics.GetRoute(pb.GetRouteRequest(name="orders"))
    unknown = writer.topics.GetRoute(pb.GetRouteRequest(name="new"))
    assert (known.store_name, known.address) == ("tidemark-0", "192.168.7.65:10911")
    assert (known.topic.write_queue_count, known.would_create) == (6, False)
    assert (unknown.topic.write_queue_count, unknown.would_create) == (4, True)
    assert [topic.name for topic in writer.topics.ListTopics(pb.ListTopicsRequest()).topics] == ["orders"]


def test_queue_offsets_of_a_deleted_topic_are_never_reused(tmp_path: Path) -> None:
    """A topic created again continues at its end, from a tombstone, also after a restart without the snapshot."""
    with RunningWriter(tmp_path) as writer:
        create(writer, "orders", 2)
        end = writer.append("orders", wire_batch(*[(b"x", b"", 0)] * 5), queue_id=1).end_physical_offset
        writer.topics.DeleteTopic(pb.DeleteTopicRequest(name="orders"))
        assert not writer.topics.ListTopics(pb.ListTopicsRequest()).topics
    stones = orjson.loads((tmp_path / "tidemark" / "writer" / "tombstones.json").read_bytes())["tombstones"]
    assert stones == [{"topic": "orders", "physicalOffset": end, "nextOffsets": {"1": 5}}]
    for name in ("queue_offsets", "queue_offsets.copy"):
        (tmp_path / "tidemark" / "writer" / name).unlink()
    with RunningWriter(tmp_path) as writer:
        create(writer, "orders", 2)
        assert writer.append("orders", ONE, queue_id=1).queue_offset == 5
        assert writer.append("orders", ONE, queue_id=0).queue_offset == 0


def test_a_concurrently_created_topic_determines_the_accepted_messages(
    writer: RunningWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compressed message is valid for an automatically created topic, and is refused by one of batches."""

    async def others_are_faster(self: TopicTable, name: str) -> None:
        await self.create(name, queues=0, attributes={"queue.type": "BatchCQ"})

    monkeypatch.setattr(TopicTable, "ensure", others_are_faster)
    refusal = refusal_of(lambda: writer.append("new", ONE, sys_flag=int(SysFlag.COMPRESSED)))
    assert refusal.reason == "INNER_BATCH_ILLEGAL"
    assert writer.info().max_physical_offset == 0


def test_topics_survive_a_restart(tmp_path: Path) -> None:
    """All given settings are kept."""
    with RunningWriter(tmp_path) as writer:
        before = create(writer, "orders", 3, queue_type="BatchCQ", message_type="NORMAL").topic
    with RunningWriter(tmp_path) as writer:
        assert list(writer.topics.ListTopics(pb.ListTopicsRequest()).topics) == [before]


def alter(writer: RunningWriter, name: str, **fields: Any) -> pb.Topic:
    answer: pb.AlterTopicResponse = writer.topics.AlterTopic(pb.AlterTopicRequest(name=name, **fields))
    return answer.topic


@pytest.mark.parametrize("queue_type", ["SimpleCQ", "BatchCQ"])
def test_altered_topic_is_in_the_file_before_the_answer(writer: RunningWriter, queue_type: str) -> None:
    """Queue counts, permission and attributes change; others stay."""
    create(writer, "orders", 4, queue_type=queue_type)
    altered = alter(writer, "orders", write_queue_count=2, permission=4, attributes={"+message.type": "NORMAL"})
    entry = orjson.loads((writer.root / "config" / "topics.json").read_bytes())["topicConfigTable"]["orders"]
    assert (entry["readQueueNums"], entry["writeQueueNums"], entry["perm"]) == (4, 2, 4)
    assert entry["attributes"] == dict(altered.attributes) == {"queue.type": queue_type, "message.type": "NORMAL"}
    assert (altered.read_queue_count, altered.write_queue_count, altered.permission) == (4, 2, 4)


def test_an_altered_topic_applies_its_queues_and_permission(writer: RunningWriter) -> None:
    """More queues are usable at once, none while writing is not permitted; the round robin uses the write queues."""
    create(writer, "orders", 1)
    refusal_of(lambda: writer.append("orders", ONE, queue_id=5))
    alter(writer, "orders", read_queue_count=6, write_queue_count=6)
    assert writer.append("orders", ONE, queue_id=5).queue_id == 5
    alter(writer, "orders", write_queue_count=2)
    assert {writer.append("orders", ONE, queue_id=None).queue_id for _ in range(6)} == {0, 1}
    alter(writer, "orders", permission=4)
    assert refusal_of(lambda: writer.append("orders", ONE)).reason == "TOPIC_FORBIDDEN"


@pytest.mark.parametrize(
    ("name", "fields", "reason"),
    [
        ("nowhere", {"permission": 6}, "TOPIC_NOT_FOUND"),
        ("orders", {"read_queue_count": 0}, "ARGUMENT_ILLEGAL"),
        ("orders", {"write_queue_count": 1025}, "ARGUMENT_ILLEGAL"),
        ("orders", {"permission": 8}, "ARGUMENT_ILLEGAL"),
        ("orders", {"permission": -1}, "ARGUMENT_ILLEGAL"),
        ("orders", {"permission": 4, "attributes": {"+queue.type": "BatchCQ"}}, "TOPIC_ATTRIBUTE_ILLEGAL"),
        ("orders", {"attributes": {"-message.type": ""}}, "TOPIC_ATTRIBUTE_ILLEGAL"),
    ],
)
def test_invalid_alterations_change_nothing(
    writer: RunningWriter, name: str, fields: dict[str, Any], reason: str
) -> None:
    """The error has the reason; even the valid parts of the request have no effect."""
    create(writer, "orders", 3)
    before = (writer.root / "config" / "topics.json").read_bytes()
    assert refusal_of(lambda: alter(writer, name, **fields)).reason == reason
    assert (writer.root / "config" / "topics.json").read_bytes() == before


def test_alterations_survive_a_restart(tmp_path: Path) -> None:
    """All other settings of the topic stay."""
    with RunningWriter(tmp_path) as writer:
        create(writer, "orders", 3)
        before = alter(writer, "orders", read_queue_count=9, attributes={"+reserve.time": "-1"})
    with RunningWriter(tmp_path) as writer:
        assert list(writer.topics.ListTopics(pb.ListTopicsRequest()).topics) == [before]


def test_topic_with_attributes_of_a_broker_is_served(tmp_path: Path) -> None:
    """Attributes that a request may not set stay on a broker's topic, which accepts messages."""
    attributes = {"cleanup.policy": "COMPACTION", "message.type": "FIFO", "reserve.time": "5", "lite.bind.topic": "x"}
    paths = StorePaths(tmp_path)
    save_topics(paths.topics, {"t": TopicConfig("t", 1, 1, attributes=attributes)}, DiskStorage(), counter=1)
    with RunningWriter(tmp_path) as writer:
        assert writer.append("t", ONE).queue_offset == 0
        assert alter(writer, "t", write_queue_count=2).attributes == attributes
