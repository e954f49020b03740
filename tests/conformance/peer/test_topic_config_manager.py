"""RocketMQ's TopicConfigManagerTest, TopicValidatorTest and the client's ValidatorsTest: topics, attributes, names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.peer.message_store import MessageStore, put_status
from tests.integration.writer.harness import RunningWriter, refusal_of
from tests.query_server import serve_query
from tidemark.errors import TopicAttributeError
from tidemark.format.topic_name import is_topic_name
from tidemark.read.store_reader import StoreReader
from tidemark.store.originals.topics import TopicConfig, attributes_to_create, load_topics
from tidemark.v1 import topics_pb2

pytestmark = pytest.mark.conformance


def create(writer: RunningWriter, name: str, **attributes: str) -> None:
    writer.topics.CreateTopic(topics_pb2.CreateTopicRequest(name=name, attributes=attributes))


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"+unknown": "x"}, "unsupported key: unknown"),
        ({"++enum.key": "x"}, "kv string format wrong."),
        ({"-queue.type": ""}, "only add attribute is supported while creating topic. key: queue.type"),
        ({"+queue.type": "wrong-value"}, "value is not in set: [SimpleCQ, BatchCQ]"),
        ({"+queue.type": "BatchCQ", "queue.type": "BatchCQ"}, "alter duplication key. key: queue.type"),
    ],
)
def test_tc1_tc2_invalid_attributes_are_refused_with_rocketmqs_message(attributes: dict[str, str], text: str) -> None:
    """They are unknown, malformed, deleted on creation, out of range, or given twice."""
    with pytest.raises(TopicAttributeError) as refused:
        attributes_to_create(attributes)
    assert refused.value.message == text


def test_tc1_a_refused_attribute_creates_no_topic(tmp_path: Path) -> None:
    """The error text comes over the wire."""
    with MessageStore(tmp_path) as store:
        request = topics_pb2.CreateTopicRequest(name="t", attributes={"+unknown": "x"})
        refusal = refusal_of(lambda: store.writer.topics.CreateTopic(request))
        assert (refusal.reason, refusal.message) == ("TOPIC_ATTRIBUTE_ILLEGAL", "unsupported key: unknown")
    assert not (tmp_path / "config" / "topics.json").exists()


def test_tc2_attributes_are_stored_without_their_sign(tmp_path: Path) -> None:
    """They stay over a restart."""
    with MessageStore(tmp_path) as store:
        create(store.writer, "t", **{"+queue.type": "BatchCQ", "+message.type": "NORMAL"})
    table = json.loads((tmp_path / "config" / "topics.json").read_text())["topicConfigTable"]
    assert table["t"]["attributes"] == {"queue.type": "BatchCQ", "message.type": "NORMAL"}
    with MessageStore(tmp_path) as store:
        (topic,) = store.writer.topics.ListTopics(topics_pb2.ListTopicsRequest()).topics
        assert dict(topic.attributes) == {"queue.type": "BatchCQ", "message.type": "NORMAL"}


def test_tc2_an_altered_topic_keeps_its_attributes(tmp_path: Path) -> None:
    """They are stored without their sign, before and after a restart."""
    with MessageStore(tmp_path) as store:
        create(store.writer, "t", **{"+queue.type": "BatchCQ"})
        altered = store.writer.topics.AlterTopic(topics_pb2.AlterTopicRequest(name="t", permission=4)).topic
        assert dict(altered.attributes) == {"queue.type": "BatchCQ"}
    table = json.loads((tmp_path / "config" / "topics.json").read_text())["topicConfigTable"]
    assert (table["t"]["attributes"], table["t"]["perm"]) == ({"queue.type": "BatchCQ"}, 4)


def test_tc3_a_topic_without_queue_type_is_simple(tmp_path: Path) -> None:
    """Its attributes are empty or missing, or it is not in topics.json at all."""
    path = tmp_path / "config" / "topics.json"
    path.parent.mkdir()
    path.write_text('{"topicConfigTable":{"a":{"topicName":"a","attributes":{}},"b":{"topicName":"b"}}}')
    assert [topic.is_batch for topic in load_topics(path).values()] == [False, False]
    (tmp_path / "consumequeue" / "c" / "0").mkdir(parents=True)
    assert StoreReader(tmp_path).topic("c") == TopicConfig("c", 0, 0)


VALID = ["Hello", "%RETRY%Hello", "_%RETRY%Hello", "-%RETRY%Hello", "223-%RETRY%Hello"]


def test_va1_topic_names_are_validated(tmp_path: Path) -> None:
    """Letters, digits, %, |, - and _ are allowed; names are neither blank nor too long."""
    with MessageStore(tmp_path) as store:
        for name in VALID:
            create(store.writer, name)
        for name in ("TOPIC&*^", "", "   ", "t" * 128):
            assert put_status(store.refused(name, (b"x", {}))) == "MESSAGE_ILLEGAL"
        names = {topic.name for topic in store.writer.topics.ListTopics(topics_pb2.ListTopicsRequest()).topics}
    assert names == set(VALID)


def test_va2_hk1_too_long_topic_names_are_refused(tmp_path: Path) -> None:
    """127 characters may be written to, 128 may not; a broker's retry topics are read up to 255.

    No batch may be written to a retry topic of any length; RocketMQ refuses the same.
    """
    with MessageStore(tmp_path) as store:
        assert store.put("t" * 127, (b"x", {})).queue_offset == 0
        for name in ("", "../TopicTest", "t" * 128, "%RETRY%" + "g" * 249):
            assert put_status(store.refused(name, (b"x", {}))) == "MESSAGE_ILLEGAL"
        create(store.writer, "%RETRY%g")
        assert store.refused("%RETRY%g", (b"x", {}), (b"y", {})).reason == "BATCH_RETRY_TOPIC"
    for prefix in ("%RETRY%", "%DLQ%"):
        assert is_topic_name(prefix + "g" * (255 - len(prefix)))
        assert not is_topic_name(prefix + "g" * (256 - len(prefix)))


def test_va3_system_topics_cannot_be_created_or_written(tmp_path: Path) -> None:
    """A broker's own system topics cannot be created; those of its services accept no message."""
    not_to_be_made = ["TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC", "rmq_sys_wheel_timer", "rmq_sys_anything"]
    services = ["SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"]
    services += ["TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT"]
    with MessageStore(tmp_path) as store:
        for name in (*not_to_be_made, *services):
            assert refusal_of(lambda name=name: create(store.writer, name)).reason == "TOPIC_FORBIDDEN"
            assert store.refused(name, (b"x", {})).reason == "TOPIC_FORBIDDEN"
        assert not store.writer.topics.ListTopics(topics_pb2.ListTopicsRequest()).topics


def test_va4_a_permission_has_only_inherit_write_and_read_bits(tmp_path: Path) -> None:
    """They are bits 1, 2 and 4; other bits are refused and change nothing."""
    with MessageStore(tmp_path) as store:
        create(store.writer, "t")

        def alter(permission: int) -> int:
            request = topics_pb2.AlterTopicRequest(name="t", permission=permission)
            return int(store.writer.topics.AlterTopic(request).topic.permission)

        assert [alter(permission) for permission in range(8)] == list(range(8))
        for permission in (8, 16, -1):
            assert refusal_of(lambda permission=permission: alter(permission)).reason == "ARGUMENT_ILLEGAL"
        (topic,) = store.writer.topics.ListTopics(topics_pb2.ListTopicsRequest()).topics
        assert topic.permission == 7


def test_va5_a_blank_group_is_refused(tmp_path: Path) -> None:
    """A group with other characters, or with a too long name, is refused too."""
    with MessageStore(tmp_path) as store:
        store.put("t", (b"x", {}))
        store.dispatch()
        with serve_query(tmp_path, index_slots=100, index_entries=1000) as client:
            for group in ("%20", "%20%20", "a%20b", "g" * 256):
                answer = client.put(f"/v1/groups/{group}/topics/t/queues/0/offset", json={"offset": 1})
                assert (answer.status_code, answer.json()["reason"]) == (422, "ARGUMENT_ILLEGAL")
            assert client.put("/v1/groups/g/topics/t/queues/0/offset", json={"offset": 1}).status_code == 200
