"""A retry beyond its limit is stored in its group's dead letters, whichever client sends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import properties, wire_batch
from tidemark.client import Producer
from tidemark.client.consumer.retry_later import RetryLater
from tidemark.client.received_message import ReceivedMessage
from tidemark.format.properties import decode_properties
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1 import topics_pb2

from .harness import RunningWriter, refusal_of, stored_records

pytestmark = pytest.mark.integration

RETRY, DEAD = "%RETRY%g", "%DLQ%g"


def retry(writer: RunningWriter, given: dict[str, str] | None = None, **fields: Any) -> pb.AppendBatchResponse:
    """Send one packed message to the retry topic, with DELAY as a client gives it."""
    element = (b"failed", properties({"UNIQ_KEY": "u", "DELAY": "5", **(given or {})}), 0)
    return writer.append(RETRY, wire_batch(element), queue_id=None, **fields)


@pytest.mark.parametrize(
    ("settings", "given", "fields", "limit"),
    [
        ({}, {}, {}, 16),
        ({"max_reconsume_times": 3}, {}, {}, 3),
        ({"max_reconsume_times": 0}, {}, {}, 1),  # a message that was never tried is no retry
        ({}, {"MAX_RECONSUME_TIMES": "2"}, {}, 2),
        ({}, {}, {"properties": {"MAX_RECONSUME_TIMES": "5"}}, 5),
        ({}, {"MAX_RECONSUME_TIMES": "20"}, {"properties": {"MAX_RECONSUME_TIMES": "5"}}, 20),
        ({"max_reconsume_times": 4}, {"MAX_RECONSUME_TIMES": "-1"}, {}, 4),
    ],
    ids=["default", "setting", "setting of 0", "property", "request", "property before request", "negative"],
)
def test_a_retry_at_its_limit_becomes_a_dead_letter(
    tmp_path: Path, settings: dict[str, Any], given: dict[str, str], fields: dict[str, Any], limit: int
) -> None:
    """Below the limit it waits for its next try; at the limit it is stored at once, and the answer names the topic."""
    with RunningWriter(tmp_path, **settings) as writer:
        if limit > 1:
            below = retry(writer, given, **fields, reconsume_times=limit - 1)
            assert (below.stored_topic, below.deliver_timestamp_ms > 0) == ("", True)
        for tries in (limit, limit + 1):
            answer = retry(writer, given, **fields, reconsume_times=tries)
            assert (answer.stored_topic, answer.queue_id, answer.deliver_timestamp_ms) == (DEAD, 0, 0)
        shapes = {topic.name: topic for topic in writer.topics.ListTopics(topics_pb2.ListTopicsRequest()).topics}
    assert (shapes[DEAD].read_queue_count, shapes[DEAD].write_queue_count, shapes[DEAD].permission) == (1, 1, 6)
    dead = [record for record in stored_records(tmp_path) if record.topic == DEAD.encode()]
    assert [record.reconsume_times for record in dead] == [limit, limit + 1]
    assert [decode_properties(record.properties) for record in dead] == [{"UNIQ_KEY": "u", **given}] * 2


def test_an_unpacked_retry_becomes_a_dead_letter(tmp_path: Path) -> None:
    """Tag, keys and properties stay."""
    message = pb.Message(body=b"x", tag="a", keys=["k"], properties={"p": "q", "MAX_RECONSUME_TIMES": "1"}, flag=7)
    with RunningWriter(tmp_path) as writer:
        request: dict[str, Any] = {
            "messages": pb.MessageList(messages=[message]),
            "properties": {"DELAY": "3"},
            "queue_id": 0,
        }
        answer = writer.append(RETRY, **request, reconsume_times=1)
    assert (answer.stored_topic, answer.deliver_timestamp_ms) == (DEAD, 0)
    (record,) = stored_records(tmp_path)
    assert (record.topic, record.body, record.flag) == (DEAD.encode(), b"x", 7)
    assert decode_properties(record.properties) == {"TAGS": "a", "KEYS": "k", "p": "q", "MAX_RECONSUME_TIMES": "1"}


def test_a_retry_at_its_limit_on_a_stream_becomes_a_dead_letter(tmp_path: Path) -> None:
    """The fast path has the same rule."""
    batch = pb.AppendBatchRequest(topic=RETRY, packed=wire_batch((b"x", b"", 0)), reconsume_times=16)
    request = pb.AppendStreamRequest(batches=[pb.AppendStreamRequest.Entry(correlation_id=1, batch=batch)])
    with RunningWriter(tmp_path) as writer:
        (result,) = next(iter(writer.log.AppendStream(iter([request]), timeout=30))).results
    assert result.appended.stored_topic == DEAD


def test_dead_letter_topics_are_created_without_auto_create(tmp_path: Path) -> None:
    """As in a broker, a message without further tries must not be refused."""
    with RunningWriter(tmp_path, auto_create_topics=False) as writer:
        assert refusal_of(lambda: retry(writer, reconsume_times=15)).reason == "TOPIC_NOT_FOUND"
        assert retry(writer, reconsume_times=16).stored_topic == DEAD


def test_a_repeated_dead_letter_is_stored_once(tmp_path: Path) -> None:
    """The answer of the repetition names the topic too, also after a restart."""
    answers = []
    for _ in range(2):
        with RunningWriter(tmp_path) as writer:
            answers += [retry(writer, reconsume_times=16) for _ in range(2)]
    assert [(answer.stored_topic, answer.duplicate) for answer in answers] == [
        (DEAD, False),
        *[(DEAD, True)] * 3,
    ]
    assert len(stored_records(tmp_path)) == 1


def test_invalid_retries_are_refused(tmp_path: Path) -> None:
    """These are a batch, malformed bytes, an invalid limit, and an expected offset of the retry topic."""
    one = wire_batch((b"x", b"", 0))
    with RunningWriter(tmp_path) as writer:
        refusals: dict[str, dict[str, Any]] = {
            "BATCH_RETRY_TOPIC": {"packed": one + one},
            "BATCH_MALFORMED": {"packed": one[:-1]},
            "PROPERTIES_ILLEGAL": {"packed": wire_batch((b"x", properties({"MAX_RECONSUME_TIMES": "many"}), 0))},
            "ARGUMENT_ILLEGAL": {"packed": one, "expected_next_offset": 0},
        }
        for reason, fields in refusals.items():
            refused = refusal_of(lambda fields=fields: writer.append(RETRY, **fields, reconsume_times=16))
            assert refused.reason in {reason, "BATCH_RETRY_TOPIC"}, reason
        assert writer.info().max_physical_offset == 0


def test_other_topics_have_no_limit(tmp_path: Path) -> None:
    """The rule applies only to retry topics."""
    with RunningWriter(tmp_path) as writer:
        assert writer.append("t", wire_batch((b"x", b"", 0)), reconsume_times=99).stored_topic == ""


def test_a_higher_attempt_limit_of_a_consumer_applies(tmp_path: Path) -> None:
    """`consume(max_attempts=20)` gets its twenty attempts: the client states them in each retry."""
    message = ReceivedMessage(
        "orders", 0, 7, b"body", None, (), {}, "id", "place", 0, 0, 0, 0, 0, 16, "127.0.0.1:1", "127.0.0.1:2"
    )
    with RunningWriter(tmp_path) as writer, Producer(writer.address) as producer:
        RetryLater(producer, "g", max_attempts=20, first_delay_level=1).send(message)
    (record,) = stored_records(tmp_path)
    found = decode_properties(record.properties)
    assert (record.reconsume_times, found["REAL_TOPIC"], found["MAX_RECONSUME_TIMES"]) == (17, RETRY, "20")
