"""Delayed messages through a running writer with the pipeline's epochs: they wait, and are delivered when due."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import make_plan
from tests.builders import properties, wire_batch
from tests.pipeline_runs import GOLDEN_SETTINGS, build
from tests.waiting import until
from tidemark.format.properties import decode_properties
from tidemark.format.record import Record
from tidemark.store.storage import DiskStorage
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1 import topics_pb2

from .harness import RunningWriter, refusal_of, stored_records

pytestmark = pytest.mark.integration

SCHEDULE = "SCHEDULE_TOPIC_XXXX"
LEVEL_1_MS = 1_000


def delay(
    writer: RunningWriter, body: bytes, topic: str = "t", level: int = 1, **fields: Any
) -> pb.AppendBatchResponse:
    """Append one message with DELAY."""
    return writer.append(topic, wire_batch((body, properties({"DELAY": str(level)}), 0)), **fields)


def index(root: Path, **settings: Any) -> None:
    """Index as `pipeline --once` does with a running writer."""
    build(make_plan(PipelineSettings(store_root=root, once=True, **{"index_slots": 10, **settings})))


def in_topic(root: Path, topic: str) -> list[Record]:
    return [record for record in stored_records(root) if record.topic == topic.encode()]


def saved_offsets(root: Path) -> dict[str, int]:
    content: dict[str, dict[str, int]] = orjson.loads((root / "config" / "delayOffset.json").read_bytes())
    return content["offsetTable"]


def test_the_answer_for_a_delayed_message_has_time_and_queue(writer: RunningWriter) -> None:
    """The queue is the topic's own, chosen as usual; the place is the record's in the schedule topic."""
    writer.append("t", wire_batch((b"before", b"", 0)), queue_id=2)
    answers = [delay(writer, b"%d" % i, level=4, queue_id=None, routing_key="k") for i in range(2)]
    queue_id = writer.append("t", wire_batch((b"now", b"", 0)), queue_id=None, routing_key="k").queue_id
    assert [(answer.queue_id, answer.queue_offset) for answer in answers] == [(queue_id, 0), (queue_id, 1)]
    assert all(answer.deliver_timestamp_ms == answer.store_timestamp_ms + 30_000 for answer in answers)
    record = in_topic(writer.root, SCHEDULE)[1]
    assert (record.queue_id, record.queue_offset, record.physical_offset) == (3, 1, answers[1].physical_offset)
    topics = orjson.loads((writer.root / "config" / "topics.json").read_bytes())["topicConfigTable"]
    assert [topics[SCHEDULE][name] for name in ("readQueueNums", "writeQueueNums", "perm")] == [18, 18, 6]
    assert topics["t"]["writeQueueNums"] == 4


def test_not_delayed_messages_are_answered_without_a_time(writer: RunningWriter) -> None:
    """Level 0 is no delay, and creates no schedule topic."""
    assert delay(writer, b"x", level=0).deliver_timestamp_ms == 0
    assert [topic.name for topic in writer.topics.ListTopics(topics_pb2.ListTopicsRequest()).topics] == ["t"]


def test_the_delay_level_of_the_request_applies_without_one_in_the_message(writer: RunningWriter) -> None:
    """The message's own level takes precedence, in both forms of a request."""
    one = pb.MessageList(messages=[pb.Message(body=b"x")])
    spelled = writer.append("t", properties={"DELAY": "2"}, messages=one)
    own = delay(writer, b"y", level=3, properties={"DELAY": "2"})
    assert spelled.deliver_timestamp_ms - spelled.store_timestamp_ms == 5_000
    assert own.deliver_timestamp_ms - own.store_timestamp_ms == 10_000


def test_delivered_when_due_and_indexed(writer: RunningWriter) -> None:
    """It comes at its time with all its data, at the end of its own queue."""
    sent = delay(writer, b"later", queue_id=1, born_timestamp_ms=5, reconsume_times=2, flag=0, request_id="r")
    time.sleep(LEVEL_1_MS / 1000 + 0.2)
    assert in_topic(writer.root, "t") == [], "the message is not indexed yet"
    index(writer.root)
    until(lambda: len(in_topic(writer.root, "t")) == 1)
    (record,) = in_topic(writer.root, "t")
    assert (record.body, record.queue_id, record.queue_offset) == (b"later", 1, 0)
    assert (record.born_timestamp, record.reconsume_times) == (5, 2)
    assert record.store_timestamp >= sent.deliver_timestamp_ms
    assert decode_properties(record.properties) == {
        "DELAY": "1",
        "UNIQ_KEY": "r",
        "REAL_TOPIC": "t",
        "REAL_QID": "1",
    }


def test_an_indexed_delayed_message_is_delivered_when_due(writer: RunningWriter) -> None:
    """It comes neither before nor much later."""
    sent = delay(writer, b"later")
    index(writer.root)
    until(lambda: len(in_topic(writer.root, "t")) == 1)
    late_ms = in_topic(writer.root, "t")[0].store_timestamp - sent.deliver_timestamp_ms
    assert 0 <= late_ms < 500


def test_order_within_a_level_is_kept(writer: RunningWriter) -> None:
    """Many messages take several reads; another level's are independent."""
    for number in range(600):
        delay(writer, b"%d" % number)
    delay(writer, b"other", level=2)
    index(writer.root)
    until(lambda: len(in_topic(writer.root, "t")) == 600)
    assert [record.body for record in in_topic(writer.root, "t")] == [b"%d" % number for number in range(600)]


def test_the_retry_topic_accepts_repeated_attempts_of_a_message(writer: RunningWriter) -> None:
    """A failed message keeps its UNIQ_KEY; each further try is stored and delivered, a repeated send is not."""
    for tries in (1, 2):
        for repeat in (False, True):
            answer = delay(writer, b"failed", "%RETRY%g", request_id="u", reconsume_times=tries)
            assert answer.duplicate == repeat
    other = delay(writer, b"failed", "%RETRY%h", request_id="u", reconsume_times=1)
    assert not other.duplicate
    index(writer.root)
    until(lambda: len(in_topic(writer.root, "%RETRY%g")) == 2 and len(in_topic(writer.root, "%RETRY%h")) == 1)
    assert [record.reconsume_times for record in in_topic(writer.root, "%RETRY%g")] == [1, 2]
    dead = writer.append("%DLQ%g", wire_batch((b"failed", b"", 0)), reconsume_times=16)
    assert dead.deliver_timestamp_ms == 0
    topics = {topic.name: topic for topic in writer.topics.ListTopics(topics_pb2.ListTopicsRequest()).topics}
    assert {topics[name].write_queue_count for name in ("%RETRY%g", "%RETRY%h", "%DLQ%g")} == {1}


def test_repeated_send_is_stored_once(tmp_path: Path) -> None:
    """It gets the first answer, although round robin would have chosen another queue; also after a restart."""
    answers = []
    for _ in range(2):
        with RunningWriter(tmp_path) as writer:
            answers += [delay(writer, b"x", level=9, queue_id=None, request_id="r") for _ in range(2)]
            refusal = refusal_of(lambda writer=writer: delay(writer, b"other", level=9, request_id="r"))
            assert refusal.reason == "REQUEST_ID_CONFLICT"
    assert [answer.duplicate for answer in answers] == [False, True, True, True]
    for answer in answers:
        answer.duplicate, answer.term = False, 0
    assert all(answer == answers[0] for answer in answers)
    assert len(in_topic(tmp_path, SCHEDULE)) == 1


def not_delivered(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the events about skipped messages, shortly after the later messages have come."""
    return [event for event in events if event["event"] == "delayed_messages_not_delivered"]


def test_a_delayed_message_of_a_deleted_topic_is_skipped_and_logged(writer: RunningWriter) -> None:
    """Later messages are delivered."""
    delay(writer, b"lost", "gone")
    delay(writer, b"there", "t")
    writer.topics.DeleteTopic(topics_pb2.DeleteTopicRequest(name="gone"))
    with capture_logs() as events:
        index(writer.root)
        until(lambda: len(in_topic(writer.root, "t")) == 1 and bool(not_delivered(events)))
    (told,) = not_delivered(events)
    assert (told["messages"], told["told"][0]["topic"], told["told"][0]["reason"]) == (1, "gone", "TOPIC_NOT_FOUND")
    assert in_topic(writer.root, "gone") == []


def test_a_delayed_message_of_a_recreated_topic_is_skipped_and_logged(writer: RunningWriter) -> None:
    """A delayed message belongs to the topic that it was sent to; a new topic of that name never gets it."""
    delay(writer, b"old", "gone")
    writer.topics.DeleteTopic(topics_pb2.DeleteTopicRequest(name="gone"))
    delay(writer, b"new", "gone")
    with capture_logs() as events:
        index(writer.root)
        until(lambda: bool(in_topic(writer.root, "gone")) and bool(not_delivered(events)))
    (told,) = not_delivered(events)
    assert (told["messages"], told["told"][0]["topic"], told["told"][0]["reason"]) == (1, "gone", "TOPIC_DELETED")
    assert [record.body for record in in_topic(writer.root, "gone")] == [b"new"]


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_a_delayed_message_of_a_deleted_topic_is_not_an_original(tmp_path: Path, restart: bool) -> None:
    """The same delayed message, sent again to the new topic, is stored again and delivered."""
    with RunningWriter(tmp_path) as writer:
        delay(writer, b"x", "gone", request_id="r")
        writer.topics.DeleteTopic(topics_pb2.DeleteTopicRequest(name="gone"))
        if not restart:
            check_delayed_anew(writer)
    if restart:
        with RunningWriter(tmp_path) as writer:
            check_delayed_anew(writer)


def check_delayed_anew(writer: RunningWriter) -> None:
    assert [delay(writer, b"x", "gone", request_id="r").duplicate for _ in range(2)] == [False, True]
    index(writer.root)
    until(lambda: [record.body for record in in_topic(writer.root, "gone")] == [b"x"])


def test_a_damaged_delayed_message_is_skipped_and_logged(writer: RunningWriter) -> None:
    """Its bytes changed after it was indexed."""
    answers = [delay(writer, b"body %d" % number) for number in range(3)]
    index(writer.root)
    with (writer.root / "commitlog" / f"{0:020d}").open("r+b") as file, capture_logs() as events:
        file.seek(answers[1].physical_offset + 88)
        file.write(b"?")
        file.flush()
        until(lambda: len(in_topic(writer.root, "t")) == 2 and bool(not_delivered(events)))
    assert [record.body for record in in_topic(writer.root, "t")] == [b"body 0", b"body 2"]
    (told,) = not_delivered(events)
    assert told["told"][0]["reason"] == "BODY_CRC"


def test_the_schedule_topic_cannot_be_written_altered_or_deleted(writer: RunningWriter) -> None:
    """This also holds once it exists."""
    delay(writer, b"x", level=18)
    assert refusal_of(lambda: writer.append(SCHEDULE, wire_batch((b"x", b"", 0)))).reason == "TOPIC_FORBIDDEN"
    alteration = topics_pb2.AlterTopicRequest(name=SCHEDULE, read_queue_count=1)
    assert refusal_of(lambda: writer.topics.AlterTopic(alteration)).reason == "TOPIC_FORBIDDEN"
    deletion = topics_pb2.DeleteTopicRequest(name=SCHEDULE)
    assert refusal_of(lambda: writer.topics.DeleteTopic(deletion)).reason == "TOPIC_FORBIDDEN"


def test_delayed_delivery_continues_after_a_restart(tmp_path: Path) -> None:
    """A clean stop saves each level's offset; messages that become due meanwhile are delivered once by the next run."""
    with RunningWriter(tmp_path) as writer:
        for number in range(3):
            delay(writer, b"%d" % number)
        index(tmp_path)
        until(lambda: len(in_topic(tmp_path, "t")) == 3)
        delay(writer, b"3")
        delay(writer, b"long", level=12)
    assert saved_offsets(tmp_path) == {"1": 3}
    with RunningWriter(tmp_path):
        index(tmp_path)
        until(lambda: len(in_topic(tmp_path, "t")) == 4)
    assert saved_offsets(tmp_path) == {"1": 4}
    assert [record.body for record in in_topic(tmp_path, "t")] == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("flush_mode", ["sync", "async"])
def test_delay_offsets_are_saved_periodically(tmp_path: Path, flush_mode: str) -> None:
    """They are saved at run time; in async mode after the delivered messages are flushed."""
    given: dict[str, Any] = {"flush_mode": flush_mode, "flush_interval_ms": 50, "delay_offset_interval_ms": 50}
    with RunningWriter(tmp_path, **given) as writer:
        delay(writer, b"x")
        index(tmp_path)
        until((tmp_path / "config" / "delayOffset.json").exists)
        assert saved_offsets(tmp_path) == {"1": 1}
        delivered = in_topic(tmp_path, "t")[0]
        assert writer.info().flushed_offset > delivered.physical_offset


class UnflushedStorage(DiskStorage):
    """Syncs of the log wait for the gate."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()

    def fdatasync(self, descriptor: int) -> None:
        self.gate.wait()
        super().fdatasync(descriptor)


def test_saved_delay_offsets_are_never_ahead_of_flushed_deliveries(tmp_path: Path) -> None:
    """In async mode a delivery is answered before its flush: after a power cut it must not count as done."""
    storage = UnflushedStorage()
    given: dict[str, Any] = {"flush_mode": "async", "flush_interval_ms": 20, "delay_offset_interval_ms": 10}
    with RunningWriter(tmp_path, storage, **given) as writer:
        delay(writer, b"x")
        index(tmp_path)
        until(lambda: writer.info().flushed_offset == writer.info().committed_offset)
        storage.gate.clear()
        until(lambda: len(in_topic(tmp_path, "t")) == 1)
        time.sleep(0.3)
        assert not (tmp_path / "config" / "delayOffset.json").exists()
        storage.gate.set()
        until((tmp_path / "config" / "delayOffset.json").exists)


@pytest.fixture
def brokers_store(tmp_path: Path, golden_store: Callable[[str], Path]) -> Path:
    """Return a copy of a broker's store with all of its nine delayed messages delivered."""
    return Path(shutil.copytree(golden_store("mixed/store"), tmp_path / "store"))


@pytest.mark.parametrize(
    ("told", "repeated"), [(None, 0), ('{"offsetTable":{1:2,2:3,3:3}}', 1), ("", 9)], ids=["as left", "behind", "lost"]
)
def test_delayed_delivery_in_a_broker_store_continues_at_its_saved_offsets(
    brokers_store: Path, told: str | None, repeated: int
) -> None:
    """Messages that its file counts as delivered are skipped; later deliveries are found in the log."""
    if told is not None:
        (brokers_store / "config" / "delayOffset.json.bak").unlink(missing_ok=True)
        (brokers_store / "config" / "delayOffset.json").write_text(told)
    before = len(stored_records(brokers_store))
    with capture_logs() as events:
        with RunningWriter(brokers_store):
            index(brokers_store, **GOLDEN_SETTINGS["mixed/store"])
            time.sleep(1.5)  # the longest pause between two reads of the watermark is a second
        counts = [event["repeated"] for event in events if event["event"] == "scheduler_stopped"]
    assert len(stored_records(brokers_store)) == before
    assert counts == ([repeated] if repeated else [])


def test_unreadable_delay_offsets_stop_only_deliveries(tmp_path: Path) -> None:
    """Repeating every delivery would be worse; appends continue, and an event reports it."""
    with RunningWriter(tmp_path) as writer:
        delay(writer, b"x")
    (tmp_path / "config" / "delayOffset.json").write_text("rubbish")
    index(tmp_path)
    with capture_logs() as events, RunningWriter(tmp_path) as writer:
        until(lambda: any(event["event"] == "scheduler_failed" for event in events))
        assert writer.append("t", wire_batch((b"y", b"", 0))).queue_offset == 0
        time.sleep(0.2)
        assert [record.body for record in in_topic(tmp_path, "t")] == [b"y"]
