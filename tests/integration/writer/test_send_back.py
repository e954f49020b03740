"""SendBack: RocketMQ's consumerSendMsgBack over gRPC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import properties, wire_batch
from tidemark.format.properties import decode_properties
from tidemark.format.record import Record
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1 import topics_pb2

from .harness import RunningWriter, refusal_of, stored_records

pytestmark = pytest.mark.integration

RETRY, DEAD, SCHEDULE = "%RETRY%g", "%DLQ%g", "SCHEDULE_TOPIC_XXXX"
ORDER = wire_batch((b"order", properties({"TAGS": "a", "KEYS": "k", "UNIQ_KEY": "u1", "WAIT": "true"}), 7))
BATCH = wire_batch(*[(b"m%d" % i, properties({"UNIQ_KEY": f"u{i}", "p": str(i)}), i) for i in range(3)])
KEPT = {"TAGS": "a", "KEYS": "k", "WAIT": "true"}


def send_back(writer: RunningWriter, place: int, **fields: Any) -> pb.SendBackResponse:
    """Send back the message at *place* in topic t, for group g, unless *fields* differ."""
    request = pb.SendBackRequest(**{"group": "g", "topic": "t", "physical_offset": place, **fields})
    answer: pb.SendBackResponse = writer.log.SendBack(request, timeout=30)
    return answer


def in_topic(root: Path, topic: str) -> list[Record]:
    return [record for record in stored_records(root) if record.topic == topic.encode()]


@pytest.mark.parametrize(("asked", "tried", "level"), [(0, 0, 3), (0, 5, 8), (0, 17, 18), (1, 5, 1), (18, 0, 18)])
def test_a_sent_back_message_is_delayed_for_its_next_attempt(
    tmp_path: Path, asked: int, tried: int, level: int
) -> None:
    """The level is 3 plus the tries so far, or the given one; everything else is the original's, with one more try."""
    with RunningWriter(tmp_path, max_reconsume_times=100) as writer:
        first = writer.append("t", ORDER, reconsume_times=tried, born_timestamp_ms=1_700_000_000_000)
        answer = send_back(writer, first.physical_offset, delay_level=asked)
    assert (answer.topic, answer.dead_letter) == (RETRY, False)
    assert answer.appended.deliver_timestamp_ms > answer.appended.store_timestamp_ms
    (original,), (copy,) = in_topic(tmp_path, "t"), in_topic(tmp_path, SCHEDULE)
    assert (copy.queue_id, copy.body, copy.flag) == (level - 1, b"order", 7)
    assert (copy.born_timestamp, copy.born_host) == (original.born_timestamp, original.born_host)
    assert copy.reconsume_times == tried + 1
    found = decode_properties(copy.properties)
    assert found.pop("UNIQ_KEY") != "u1"
    assert found == {
        **KEPT,
        "RETRY_TOPIC": "t",
        "ORIGIN_MESSAGE_ID": "u1",
        "DELAY": str(level),
        "REAL_TOPIC": RETRY,
        "REAL_QID": "0",
    }


@pytest.mark.parametrize(
    ("settings", "message", "tried", "asked"),
    [
        ({}, {}, 16, {}),
        ({"max_reconsume_times": 2}, {}, 2, {}),
        ({}, {"MAX_RECONSUME_TIMES": "1"}, 1, {}),
        ({}, {"MAX_RECONSUME_TIMES": "9"}, 1, {"max_reconsume_times": 1}),
        ({}, {}, 0, {"max_reconsume_times": 0}),
        ({}, {}, 0, {"delay_level": -1}),
    ],
    ids=["default", "setting", "property", "request", "no retry at all", "negative level"],
)
def test_a_sent_back_message_at_its_limit_is_a_dead_letter(
    tmp_path: Path, settings: dict[str, Any], message: dict[str, str], tried: int, asked: dict[str, int]
) -> None:
    """It is stored at once in %DLQ%group, which is created; the delay level is ignored."""
    with RunningWriter(tmp_path, auto_create_topics=True, **settings) as writer:
        first = writer.append("t", wire_batch((b"x", properties(message), 0)), reconsume_times=tried)
        answer = send_back(writer, first.physical_offset, **asked)
        info = {topic.name: topic for topic in writer.topics.ListTopics(topics_pb2.ListTopicsRequest()).topics}
    assert (answer.topic, answer.dead_letter, answer.appended.deliver_timestamp_ms) == (DEAD, True, 0)
    assert (info[DEAD].write_queue_count, info[DEAD].permission) == (1, 6)
    (copy,) = in_topic(tmp_path, DEAD)
    found = decode_properties(copy.properties)
    assert (copy.reconsume_times, found["RETRY_TOPIC"], found["DLQ_ORIGIN_TOPIC"]) == (tried + 1, "t", "t")
    assert found["DLQ_ORIGIN_MESSAGE_ID"] == found["ORIGIN_MESSAGE_ID"]
    assert "DELAY" not in found


def test_a_repeated_send_back_is_stored_once(tmp_path: Path) -> None:
    """This holds after a restart too; another group, or another message, has its own copy."""
    with RunningWriter(tmp_path) as writer:
        places = [writer.append("t", wire_batch((b"x", b"", 0))).physical_offset for _ in range(2)]
        answers = [send_back(writer, places[0]) for _ in range(2)]
    with RunningWriter(tmp_path) as writer:
        answers.append(send_back(writer, places[0]))
        assert [answer.appended.duplicate for answer in answers] == [False, True, True]
        assert not send_back(writer, places[0], group="h").appended.duplicate
        assert not send_back(writer, places[1]).appended.duplicate
    assert len(in_topic(tmp_path, SCHEDULE)) == 3


def test_messages_of_an_inner_batch_are_sent_back_one_by_one(tmp_path: Path) -> None:
    """Each has its own body, properties, flag and identity."""
    with RunningWriter(tmp_path) as writer:
        writer.topics.CreateTopic(topics_pb2.CreateTopicRequest(name="t", attributes={"queue.type": "BatchCQ"}))
        place = writer.append("t", BATCH).physical_offset
        answers = [send_back(writer, place, inner_index=i, delay_level=-1) for i in (0, 1, 2, 1)]
        for wrong in ({}, {"inner_index": 3}, {"inner_index": -1}):
            refused = refusal_of(lambda wrong=wrong: send_back(writer, place, **wrong))
            assert (refused.reason, refused.facts["argument"]) == ("ARGUMENT_ILLEGAL", "inner_index")
    assert [answer.appended.duplicate for answer in answers] == [False, False, False, True]
    copies = in_topic(tmp_path, DEAD)
    assert [(copy.body, copy.flag, copy.sys_flag & 0xC0) for copy in copies] == [(b"m%d" % i, i, 0) for i in range(3)]
    found = [decode_properties(copy.properties) for copy in copies]
    assert [one["p"] for one in found] == ["0", "1", "2"]
    assert [one["ORIGIN_MESSAGE_ID"] for one in found] == ["u0", "u1", "u2"]
    assert len({one["UNIQ_KEY"] for one in found}) == 3


def test_a_retry_that_fails_again_keeps_its_origin(tmp_path: Path) -> None:
    """RETRY_TOPIC and ORIGIN_MESSAGE_ID are set once, and the number of tries grows."""
    with RunningWriter(tmp_path, max_reconsume_times=1) as writer:
        given = properties({"RETRY_TOPIC": "orders", "ORIGIN_MESSAGE_ID": "first", "UNIQ_KEY": "retry 1"})
        place = writer.append("%DLQ%other", wire_batch((b"x", given, 0)), reconsume_times=1).physical_offset
        answer = send_back(writer, place, topic="%DLQ%other", origin_message_id="ignored")
    assert answer.topic == DEAD
    (copy,) = in_topic(tmp_path, DEAD)
    found = decode_properties(copy.properties)
    assert (found["RETRY_TOPIC"], found["ORIGIN_MESSAGE_ID"], copy.reconsume_times) == ("orders", "first", 2)


def test_a_send_back_of_another_message_offset_is_refused(tmp_path: Path) -> None:
    """It is past the log, within a record, of another topic, or of a deleted topic; nothing is stored."""
    with RunningWriter(tmp_path) as writer:
        first = writer.append("t", ORDER)
        gone = writer.append("gone", ORDER).physical_offset
        writer.topics.DeleteTopic(topics_pb2.DeleteTopicRequest(name="gone"))
        end = writer.info().committed_offset
        for reason, fields in (
            ("OFFSET_OUT_OF_RANGE", {"physical_offset": end}),
            ("NOT_FOUND", {"physical_offset": first.physical_offset + 1}),
            ("NOT_FOUND", {"physical_offset": gone, "topic": "gone"}),
            ("ARGUMENT_ILLEGAL", {"topic": "u"}),
            ("ARGUMENT_ILLEGAL", {"physical_offset": -1}),
            ("ARGUMENT_ILLEGAL", {"delay_level": 19}),
            ("ARGUMENT_ILLEGAL", {"inner_index": 0}),
            ("ARGUMENT_ILLEGAL", {"group": ""}),
            ("ARGUMENT_ILLEGAL", {"group": "g" * 121}),
            ("ARGUMENT_ILLEGAL", {"group": "g+t"}),
            ("TOPIC_ILLEGAL", {"group": "g/h"}),
            ("TOPIC_FORBIDDEN", {"topic": SCHEDULE}),
        ):
            refused = refusal_of(lambda fields=fields: send_back(writer, first.physical_offset, **fields))
            assert refused.reason == reason, (fields, refused.message)
        assert writer.info().committed_offset == end


def test_a_send_back_of_a_damaged_message_is_refused(tmp_path: Path) -> None:
    """Its bytes differ from the sent ones."""
    with RunningWriter(tmp_path) as writer:
        place = writer.append("t", ORDER).physical_offset
        with (tmp_path / "commitlog" / f"{0:020d}").open("r+b") as file:
            file.seek(place + 88)
            file.write(b"?")
        assert refusal_of(lambda: send_back(writer, place)).reason == "CORRUPT_MESSAGE"


def test_a_batch_retry_topic_is_refused(tmp_path: Path) -> None:
    """Retries are single messages."""
    with RunningWriter(tmp_path) as writer:
        place = writer.append("t", ORDER).physical_offset
        writer.topics.CreateTopic(topics_pb2.CreateTopicRequest(name=DEAD, attributes={"queue.type": "BatchCQ"}))
        assert refusal_of(lambda: send_back(writer, place, delay_level=-1)).reason == "BATCH_RETRY_TOPIC"
