"""Every reason to refuse an append: the right code and reason, nothing written, no queue offset used."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.builders import properties, wire_batch
from tidemark.store.originals.topics import TopicConfig, save_topics
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1 import topics_pb2

from .harness import RunningWriter, log_bytes, refusal_of, stored_records

pytestmark = pytest.mark.integration

ONE = wire_batch((b"x", b"", 0))
TWO = ONE + ONE
INVALID, NOT_FOUND, DENIED = "INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED"


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWriter]:
    """Run a store with a simple topic `s`, a BatchCQ topic `b` and a read-only one, `r`."""
    root = tmp_path_factory.mktemp("store")
    save_topics(
        StorePaths(root).topics,
        {
            "s": TopicConfig("s", 4, 4),
            "b": TopicConfig("b", 4, 4, attributes={"queue.type": "BatchCQ"}),
            "r": TopicConfig("r", 4, 4, permission=4),
            "%RETRY%g": TopicConfig("%RETRY%g", 1, 1),
            "%RETRY%b": TopicConfig("%RETRY%b", 1, 1, attributes={"queue.type": "BatchCQ"}),
            "SELF_TEST_TOPIC": TopicConfig("SELF_TEST_TOPIC", 1, 1),
        },
        DiskStorage(),
        counter=1,
    )
    with RunningWriter(root, auto_create_topics=False, max_message_size_bytes=100_000) as running:
        yield running


def messages(**fields: Any) -> dict[str, pb.MessageList]:
    return {"messages": pb.MessageList(messages=[pb.Message(**{"body": b"x", **fields})])}


def packed(*elements: tuple[bytes, bytes, int]) -> dict[str, bytes]:
    return {"packed": wire_batch(*elements)}


P = properties
CASES: list[tuple[str, str, str, str, dict[str, Any]]] = [
    # name, topic, code, reason, request
    ("empty topic", "", INVALID, "TOPIC_ILLEGAL", {"packed": ONE}),
    ("packed with the store's CRC", "s", INVALID, "PROPERTIES_ILLEGAL", packed((b"x", P({"__CRC32#": "1"}), 0))),
    ("message with the store's CRC", "s", INVALID, "PROPERTIES_ILLEGAL", messages(properties={"__CRC32#": "1"})),
    (
        "wrapper with the store's CRC",
        "b",
        INVALID,
        "PROPERTIES_ILLEGAL",
        {"packed": ONE, "properties": {"__CRC32#": "1"}},
    ),
    ("topic with a slash", "a/b", INVALID, "TOPIC_ILLEGAL", {"packed": ONE}),
    ("topic with dots", "..", INVALID, "TOPIC_ILLEGAL", {"packed": ONE}),
    ("topic with a line end", "s\n", INVALID, "TOPIC_ILLEGAL", {"packed": ONE}),
    ("topic of 128 characters", "t" * 128, INVALID, "TOPIC_ILLEGAL", {"packed": ONE}),
    ("system topic", "SCHEDULE_TOPIC_XXXX", DENIED, "TOPIC_FORBIDDEN", {"packed": ONE}),
    ("system topic that exists", "SELF_TEST_TOPIC", DENIED, "TOPIC_FORBIDDEN", {"packed": ONE}),
    ("read-only topic", "r", DENIED, "TOPIC_FORBIDDEN", {"packed": ONE}),
    ("unknown topic", "nowhere", NOT_FOUND, "TOPIC_NOT_FOUND", {"packed": ONE}),
    ("negative queue", "s", INVALID, "QUEUE_ID_ILLEGAL", {"packed": ONE, "queue_id": -1}),
    ("queue that is not there", "s", INVALID, "QUEUE_ID_ILLEGAL", {"packed": ONE, "queue_id": 4}),
    ("batch to a retry topic", "%RETRY%g", INVALID, "BATCH_RETRY_TOPIC", {"packed": TWO}),
    (
        "spelled-out batch to a retry topic",
        "%RETRY%g",
        INVALID,
        "BATCH_RETRY_TOPIC",
        {"messages": pb.MessageList(messages=[pb.Message(body=b"x")] * 2)},
    ),
    ("retry topic with BatchCQ", "%RETRY%b", INVALID, "BATCH_RETRY_TOPIC", {"packed": ONE}),
    ("retry topic of no group", "%RETRY%", INVALID, "TOPIC_ILLEGAL", {"packed": ONE}),
    ("dead letters of a group of 121 characters", "%DLQ%" + "g" * 121, INVALID, "TOPIC_ILLEGAL", {"packed": ONE}),
    ("prepared transaction", "s", INVALID, "BATCH_TRANSACTION", {"packed": ONE, "sys_flag": 0x4}),
    ("committed transaction", "s", INVALID, "BATCH_TRANSACTION", {"packed": ONE, "sys_flag": 0x8}),
    ("rolled back transaction", "b", INVALID, "BATCH_TRANSACTION", {"packed": ONE, "sys_flag": 0xC}),
    ("delay on the wrapper", "s", INVALID, "BATCH_DELAY", {"packed": TWO, "properties": {"DELAY": "3"}}),
    ("delay on an inner batch", "b", INVALID, "BATCH_DELAY", {"packed": ONE, "properties": {"DELAY": "3"}}),
    ("delay in an inner batch", "b", INVALID, "BATCH_DELAY", packed((b"x", P({"DELAY": "3"}), 0))),
    ("delay that is no number", "s", INVALID, "PROPERTIES_ILLEGAL", packed((b"x", P({"DELAY": "soon"}), 0))),
    ("negative delay", "s", INVALID, "PROPERTIES_ILLEGAL", packed((b"x", P({"DELAY": "-1"}), 0))),
    (
        "delay beyond 32 bits",
        "s",
        INVALID,
        "PROPERTIES_ILLEGAL",
        {"packed": ONE, "properties": {"DELAY": "2147483648"}},
    ),
    (
        "delay with an expected offset",
        "s",
        INVALID,
        "ARGUMENT_ILLEGAL",
        {"packed": ONE, "properties": {"DELAY": "3"}, "queue_id": 0, "expected_next_offset": 0},
    ),
    (
        "delay and too long properties",
        "s",
        INVALID,
        "PROPERTIES_SIZE_EXCEEDED",
        packed((b"x", P({"DELAY": "3", "UNIQ_KEY": "u", "a": "v" * 32_740}), 0)),
    ),
    (
        "timer on a single message",
        "s",
        INVALID,
        "BATCH_DELAY",
        packed((b"x", P({"DELAY": "1", "TIMER_DELAY_MS": "9"}), 0)),
    ),
    ("timer on the wrapper", "b", INVALID, "BATCH_DELAY", {"packed": ONE, "properties": {"TIMER_DELAY_SEC": "3"}}),
    ("delay on a message", "s", INVALID, "BATCH_DELAY", packed((b"x", b"", 0), (b"y", P({"DELAY": "1"}), 0))),
    ("timer on a message", "b", INVALID, "BATCH_DELAY", packed((b"x", P({"TIMER_DELIVER_MS": "9"}), 0))),
    ("inner batch on a simple topic", "s", INVALID, "INNER_BATCH_ILLEGAL", {"packed": ONE, "sys_flag": 0x80}),
    ("unwrap flag on a simple topic", "s", INVALID, "INNER_BATCH_ILLEGAL", {"packed": ONE, "sys_flag": 0x40}),
    ("INNER_NUM without flag", "s", INVALID, "INNER_BATCH_ILLEGAL", {"packed": ONE, "properties": {"INNER_NUM": "1"}}),
    ("INNER_NUM without flag", "b", INVALID, "INNER_BATCH_ILLEGAL", {"packed": ONE, "properties": {"INNER_NUM": "1"}}),
    (
        "INNER_NUM of another count",
        "b",
        INVALID,
        "INNER_BATCH_ILLEGAL",
        {"packed": ONE, "sys_flag": 0xC0, "properties": {"INNER_NUM": "2"}},
    ),
    ("INNER_NUM on a message", "s", INVALID, "INNER_BATCH_ILLEGAL", packed((b"x", P({"INNER_NUM": "1"}), 0))),
    ("compressed inner batch", "b", INVALID, "INNER_BATCH_ILLEGAL", {"packed": ONE, "sys_flag": 0x1}),
    ("no payload", "s", INVALID, "BATCH_EMPTY", {}),
    ("no bytes", "s", INVALID, "BATCH_EMPTY", {"packed": b""}),
    ("no messages", "s", INVALID, "BATCH_EMPTY", {"messages": pb.MessageList()}),
    ("packed message without body", "s", INVALID, "BATCH_EMPTY", packed((b"x", b"", 0), (b"", b"", 0))),
    ("message without body", "s", INVALID, "BATCH_EMPTY", messages(body=b"")),
    ("body above the limit", "s", INVALID, "MESSAGE_SIZE_EXCEEDED", messages(body=bytes(100_001))),
    ("packed body above the limit", "s", INVALID, "MESSAGE_SIZE_EXCEEDED", packed((bytes(100_001), b"", 0))),
    ("batch above the limit", "s", INVALID, "MESSAGE_SIZE_EXCEEDED", packed(*[(bytes(49_990), b"", 0)] * 2)),
    ("inner batch above the limit", "b", INVALID, "MESSAGE_SIZE_EXCEEDED", packed((bytes(100_000), b"", 0))),
    ("records above the file", "s", INVALID, "MESSAGE_SIZE_EXCEEDED", {"packed": wire_batch((b"x", b"", 0)) * 12_000}),
    (
        "properties above 32,767",
        "s",
        INVALID,
        "PROPERTIES_SIZE_EXCEEDED",
        messages(properties={"a": "v" * 32_766}),
    ),
    (
        "properties above 32,767 with the request id",
        "s",
        INVALID,
        "PROPERTIES_SIZE_EXCEEDED",
        {**packed((b"x", P({"a": "v" * 32_754}), 0)), "request_id": "r"},
    ),
    (
        "wrapper properties above 32,767",
        "b",
        INVALID,
        "PROPERTIES_SIZE_EXCEEDED",
        {"packed": ONE, "properties": {"a": "v" * 32_766}},
    ),
    ("separator in a value", "s", INVALID, "PROPERTIES_ILLEGAL", messages(properties={"a": "b\x02c"})),
    ("separator in a name", "s", INVALID, "PROPERTIES_ILLEGAL", messages(properties={"a\x01": "b"})),
    ("separator in a tag", "s", INVALID, "PROPERTIES_ILLEGAL", messages(tag="b\x02c")),
    ("empty value", "s", INVALID, "PROPERTIES_ILLEGAL", messages(properties={"a": ""})),
    ("separator in the request id", "s", INVALID, "PROPERTIES_ILLEGAL", {"packed": ONE, "request_id": "a\x02"}),
    (
        "separator in a wrapper's value",
        "s",
        INVALID,
        "PROPERTIES_ILLEGAL",
        {"packed": ONE, "properties": {"a": "\x01"}},
    ),
    ("key with a space", "s", INVALID, "PROPERTIES_ILLEGAL", messages(keys=["a b"])),
    ("tag given twice", "s", INVALID, "PROPERTIES_ILLEGAL", messages(tag="a", properties={"TAGS": "b"})),
    ("expected offset without queue", "s", INVALID, "ARGUMENT_ILLEGAL", {"packed": ONE, "expected_next_offset": 0}),
    (
        "negative expected offset",
        "s",
        INVALID,
        "ARGUMENT_ILLEGAL",
        {"packed": ONE, "queue_id": 0, "expected_next_offset": -1},
    ),
    ("negative born time", "s", INVALID, "ARGUMENT_ILLEGAL", {"packed": ONE, "born_timestamp_ms": -1}),
    (
        "another next offset",
        "s",
        "FAILED_PRECONDITION",
        "NEXT_OFFSET_MISMATCH",
        {"packed": ONE, "queue_id": 3, "expected_next_offset": 7},
    ),
]


@pytest.mark.parametrize(("topic", "code", "reason", "fields"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_refused_append_has_a_reason_and_writes_nothing(
    writer: RunningWriter, topic: str, code: str, reason: str, fields: dict[str, Any]
) -> None:
    """Code, stable reason and domain arrive as rich details; the log's bytes and the queue's number stay."""
    before = log_bytes(writer.root), writer.info().max_physical_offset
    refusal = refusal_of(lambda: writer.log.AppendBatch(pb.AppendBatchRequest(topic=topic, **fields), timeout=10))
    assert (refusal.code.name, refusal.reason, refusal.domain) == (code, reason, "tidemark")
    assert (log_bytes(writer.root), writer.info().max_physical_offset) == before
    assert refusal.message


def test_a_refused_append_uses_no_queue_offset(writer: RunningWriter) -> None:
    """Appends around a refused one are numbered as if it had never been sent (RocketMQ #6570)."""
    first = writer.append("s", ONE, queue_id=1)
    refusal_of(lambda: writer.append("s", packed((bytes(100_001), b"", 0))["packed"], queue_id=1))
    refusal_of(lambda: writer.append("s", ONE, queue_id=1, expected_next_offset=0))
    second = writer.append("s", ONE, queue_id=1)
    assert second.queue_offset == first.queue_offset + 1
    assert second.physical_offset == first.end_physical_offset


def test_an_offset_mismatch_reports_the_actual_next_offset(writer: RunningWriter) -> None:
    """A failed compare-and-append returns the queue's next offset; with that number it passes."""
    writer.append("s", ONE, queue_id=2)
    refusal = refusal_of(lambda: writer.append("s", ONE, queue_id=2, expected_next_offset=99))
    assert refusal.code is grpc.StatusCode.FAILED_PRECONDITION
    actual = int(refusal.facts["actual"])
    assert refusal.facts["expected"] == "99"
    assert writer.append("s", ONE, queue_id=2, expected_next_offset=actual).queue_offset == actual


def test_the_greatest_legal_sizes_are_accepted(writer: RunningWriter) -> None:
    """A body of exactly the limit, a wire batch of exactly the limit and 32,767 bytes of properties are stored."""
    writer.append("s", wire_batch((bytes(100_000), b"", 0)), queue_id=0)
    element = 100_000 // 2 - 22
    writer.append("s", wire_batch((bytes(element), b"", 0), (bytes(element), b"", 0)), queue_id=0)
    text = P({"a": "v" * 32_764})
    assert len(text) == 32_767
    writer.append("s", wire_batch((b"x", text, 0)), queue_id=0)
    writer.append("b", wire_batch((bytes(100_000 - 22), b"", 0)), queue_id=0)
    with_id = P({"a": "v" * 32_753})
    writer.append("s", wire_batch((b"x", with_id, 0)), queue_id=0, request_id="r")
    assert {len(record.properties) for record in stored_records(writer.root)} >= {32_767}


def test_inner_batch_has_at_most_32767_messages(tmp_path: Path) -> None:
    """INNER_NUM is an i16: one more message is refused; exactly as many are stored as one record."""
    with RunningWriter(tmp_path) as writer:
        writer.topics.CreateTopic(topics_pb2.CreateTopicRequest(name="b", attributes={"queue.type": "BatchCQ"}))
        refusal = refusal_of(lambda: writer.append("b", ONE * 32_768))
        assert (refusal.code.name, refusal.reason) == ("INVALID_ARGUMENT", "INNER_BATCH_ILLEGAL")
        assert writer.append("b", ONE * 32_767).message_count == 32_767
    assert len(stored_records(tmp_path)) == 1


def test_unwritable_batch_creates_no_topic(tmp_path: Path) -> None:
    """A refused first batch creates no topic, a valid one creates it with the default queues."""
    with RunningWriter(tmp_path, default_queues=3) as writer:
        refusal_of(lambda: writer.append("new", b"rubbish"))
        assert not writer.topics.ListTopics(topics_pb2.ListTopicsRequest()).topics
        writer.append("new", ONE)
        (topic,) = writer.topics.ListTopics(topics_pb2.ListTopicsRequest()).topics
    assert (topic.name, topic.read_queue_count, topic.write_queue_count, topic.permission) == ("new", 3, 3, 6)


W = wire_batch((b"m0", P({"WAIT": "true", "TAGS": "TagA"}), 0), (b"msg1", P({"WAIT": "true"}), 3))


@pytest.mark.parametrize("topic", ["s", "b"])
def test_every_truncation_of_a_batch_is_refused(writer: RunningWriter, topic: str) -> None:
    """Truncated at any byte but between its messages, packed bytes are no wire batch, and nothing is written."""
    before = log_bytes(writer.root)
    for length in range(1, len(W)):
        if length != 44:
            refusal = refusal_of(lambda length=length: writer.append(topic, W[:length]))
            assert (refusal.code.name, refusal.reason) == ("INVALID_ARGUMENT", "BATCH_MALFORMED"), length
            assert int(refusal.facts["at"]) == (0 if length < 44 else 44)
    assert log_bytes(writer.root) == before


@pytest.mark.parametrize(
    ("at", "kind"),
    [(0, ">i"), (16, ">i"), (22, ">h"), (44, ">i"), (60, ">i"), (68, ">h")],
    ids=["size", "body length", "properties length", "second size", "second body length", "second properties length"],
)
def test_invalid_lengths_are_refused(writer: RunningWriter, at: int, kind: str) -> None:
    """Negative, zero, overrunning and off-by-one lengths in any field are BATCH_MALFORMED, and nothing is written."""
    before = log_bytes(writer.root)
    (true,) = struct.unpack_from(kind, W, at)
    greatest = 2 ** (8 * struct.calcsize(kind) - 1) - 1
    for wrong in {-1, -greatest - 1, greatest, 0, 1, true - 1, true + 1, len(W) + 1} - {true}:
        data = bytearray(W)
        struct.pack_into(kind, data, at, wrong)
        refusal = refusal_of(lambda data=data: writer.append("s", bytes(data)))
        assert (refusal.code.name, refusal.reason) == ("INVALID_ARGUMENT", "BATCH_MALFORMED"), (at, wrong)
    assert log_bytes(writer.root) == before


@pytest.mark.parametrize(
    ("method", "junk"),
    [
        ("CommitLogService/AppendBatch", b"\xff"),
        ("CommitLogService/AppendBatch", b"\x0a\x05ab"),  # truncated
        ("TopicService/CreateTopic", b"\x0a\x01\xff"),  # a name that is not UTF-8
        ("CommitLogService/ReadLog", b"\xff"),
    ],
)
def test_bytes_that_are_not_a_request_are_an_invalid_argument(
    writer: RunningWriter, method: str, junk: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """The code is not INTERNAL, which stands for a bug; the log gets no line, which any client could otherwise fill."""
    kind = writer.channel.unary_stream if method.endswith("ReadLog") else writer.channel.unary_unary
    call = kind(f"/tidemark.v1.{method}", lambda raw: raw, lambda raw: raw)
    refusal = refusal_of(lambda: list(call(junk, timeout=30)))
    assert (refusal.code.name, refusal.reason) == ("INVALID_ARGUMENT", "ARGUMENT_ILLEGAL")
    assert "request_failed" not in "".join(capsys.readouterr())


def test_bytes_that_are_not_a_request_end_a_stream(writer: RunningWriter, capsys: pytest.CaptureFixture[str]) -> None:
    """The error is the same."""
    call = writer.channel.stream_stream("/tidemark.v1.CommitLogService/AppendStream", lambda raw: raw, lambda raw: raw)
    assert refusal_of(lambda: list(call(iter([b"\xff"]), timeout=30))).reason == "ARGUMENT_ILLEGAL"
    assert "request_failed" not in "".join(capsys.readouterr())


def test_a_call_that_needs_a_deadline_is_refused_without_one(tmp_path: Path) -> None:
    """The setting is TIDEMARK_REQUIRE_DEADLINE; streams are long-lived, and need no deadline."""
    with RunningWriter(tmp_path, require_deadline=True) as strict:
        refusal = refusal_of(lambda: strict.log.GetLogInfo(pb.GetLogInfoRequest()))
        assert (refusal.code.name, refusal.reason) == ("INVALID_ARGUMENT", "DEADLINE_MISSING")
        assert strict.append(packed=wire_batch((b"x", b"", 0))).message_count == 1
        assert list(strict.log.ReadLog(pb.ReadLogRequest()))


@pytest.mark.parametrize(
    "named",
    [
        *({"TAGS": tag} for tag in ("*", "A||B", " A", "A ", "tab\there", "new\nline")),
        *({"KEYS": keys} for keys in ("k tab\tkey", "new\nline")),
    ],
    ids=repr,
)
@pytest.mark.parametrize("form", ["packed", "messages"])
def test_a_tag_or_key_that_no_reader_can_name_is_refused(
    writer: RunningWriter, form: str, named: dict[str, str]
) -> None:
    """Both forms of a request are checked; the error has the number of the message."""
    batch: dict[str, Any]
    if form == "packed":
        batch = {"packed": wire_batch((b"x", b"", 0), (b"y", properties(named), 0))}
    else:
        messages = [pb.Message(body=b"x"), pb.Message(body=b"y", properties=named)]
        batch = {"messages": pb.MessageList(messages=messages)}
    before = writer.info().max_physical_offset
    refusal = refusal_of(lambda: writer.append("s", **batch))
    assert (refusal.reason, refusal.facts["at"]) == ("PROPERTIES_ILLEGAL", "1")
    assert writer.info().max_physical_offset == before


def test_a_retried_message_keeps_a_tag_that_is_otherwise_refused(writer: RunningWriter) -> None:
    """An earlier version stored it, and a failed message must not be lost for its tag."""
    assert writer.append("%RETRY%g", wire_batch((b"x", properties({"TAGS": "A||B"}), 0))).message_count == 1
