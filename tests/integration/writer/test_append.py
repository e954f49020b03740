"""The stored bytes of an append, and its answer."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from tests.builders import BODY_OF_CRC_0, STORE_HOST, properties, record_bytes, wire_batch
from tidemark.format.elements import decode_elements
from tidemark.format.primitives import java_hash
from tidemark.format.properties import decode_properties
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1 import topics_pb2

from .harness import RunningWriter, log_bytes, refusal_of, stored_places, stored_records

pytestmark = pytest.mark.integration

W = bytes.fromhex(  # RocketMQ's wire body of a batch of two messages
    "0000002c000000000000000000000000000000026d300014574149540174727565025441475301546167410200000024"
    "000000000000000000000003000000046d736731000a57414954017472756502"
)


def test_a_legacy_batch_is_stored_like_the_plain_builder(writer: RunningWriter) -> None:
    """Both records of vector W equal records built by struct and zlib alone, at the answer's positions."""
    before = time.time_ns() // 1_000_000
    answer = writer.append(
        "TopicTest", W, queue_id=2, born_timestamp_ms=1_700_000_000_000, reconsume_times=3, sys_flag=2
    )
    data = log_bytes(writer.root)[0]
    born_host = data[48:56]
    assert born_host[:4] == bytes([127, 0, 0, 1])
    shared = {
        "topic": b"TopicTest",
        "queue_id": 2,
        "sys_flag": 2,
        "born_timestamp": 1_700_000_000_000,
        "born_host": born_host,
        "store_timestamp": answer.store_timestamp_ms,
        "store_host": STORE_HOST,
        "reconsume_times": 3,
    }
    first = record_bytes(body=b"m0", properties=properties({"WAIT": "true", "TAGS": "TagA"}), **shared)  # type: ignore[arg-type]
    second = record_bytes(
        body=b"msg1",
        properties=properties({"WAIT": "true"}),
        flag=3,
        queue_offset=1,
        physical_offset=122,
        **shared,  # type: ignore[arg-type]
    )
    assert data[: len(first) + len(second) + 8] == first + second + bytes(8)
    assert (len(first), len(second)) == (122, 114)
    assert before <= answer.store_timestamp_ms <= time.time_ns() // 1_000_000
    assert answer.status == pb.PUT_STATUS_PUT_OK
    assert (answer.queue_id, answer.queue_offset, answer.message_count) == (2, 0, 2)
    assert (answer.physical_offset, answer.end_physical_offset) == (0, 236)
    assert answer.physical_offsets == struct.pack(">qq", 0, 122)
    assert answer.store_host == STORE_HOST
    assert (answer.term, answer.duplicate) == (1, False)


def test_an_inner_batch_is_one_record_in_the_specified_form(writer: RunningWriter) -> None:
    """The record is vector IB's: body W verbatim, flags 0xC0, INNER_NUM, INNER_BASE, UNIQ_KEY, WAIT."""
    key = "7F000001149018B4AAC2851B0BAC0003"
    writer.topics.CreateTopic(topics_pb2.CreateTopicRequest(name="BT", attributes={"+queue.type": "BatchCQ"}))
    for number in range(15):  # two messages each: the vector's base is 30
        writer.append("BT", W, request_id=f"filler-{number}")
    answer = writer.append("BT", W, born_timestamp_ms=5, properties={"UNIQ_KEY": key, "WAIT": "true"})
    place, record = list(stored_places(writer.root))[-1]
    data = log_bytes(writer.root)[0][place : answer.end_physical_offset]
    expected = record_bytes(
        topic=b"BT",
        body=W,
        properties=properties({"INNER_NUM": "2", "INNER_BASE": "30", "UNIQ_KEY": key, "WAIT": "true"}),
        queue_offset=30,
        physical_offset=place,
        sys_flag=0xC0,
        born_timestamp=5,
        born_host=record.born_host,
        store_timestamp=answer.store_timestamp_ms,
        store_host=STORE_HOST,
    )
    assert data == expected
    assert len(data) == 251
    assert (answer.queue_offset, answer.message_count) == (30, 2)
    assert answer.physical_offsets == struct.pack(">q", place)
    assert writer.append("BT", W).queue_offset == 32


def test_inner_batch_without_any_key_gets_a_unique_key(writer: RunningWriter) -> None:
    """The writer makes the UNIQ_KEY that a BatchCQ record must have, a different one for each batch."""
    writer.topics.CreateTopic(topics_pb2.CreateTopicRequest(name="BT", attributes={"queue.type": "BatchCQ"}))
    writer.append("BT", W)
    writer.append("BT", W)
    keys = [decode_properties(record.properties)["UNIQ_KEY"] for record in stored_records(writer.root)]
    assert len(set(keys)) == 2
    assert all(len(key) == 32 for key in keys)


def test_messages_and_packed_bytes_are_stored_as_the_same_record(writer: RunningWriter) -> None:
    """The records of separate messages equal those of their wire batch, except for position and time."""
    message = pb.Message(body=b"b", tag="T", keys=["k1", "k2"], properties={"a": "1"}, flag=9)
    writer.append("t", messages=pb.MessageList(messages=[message]), born_timestamp_ms=1)
    packed = wire_batch((b"b", properties({"TAGS": "T", "KEYS": "k1 k2", "a": "1"}), 9))
    writer.append("t", packed, born_timestamp_ms=1)
    spelled, given = stored_records(writer.root)
    same = {"queue_offset": 0, "physical_offset": 0, "store_timestamp": 0, "born_host": b""}
    assert spelled._replace(**same) == given._replace(**same)  # type: ignore[arg-type]
    assert (spelled.queue_offset, given.queue_offset) == (0, 1)


def test_wrapper_properties_are_not_stored_on_a_simple_topic(writer: RunningWriter) -> None:
    """Records of a legacy batch have only their element's properties (docs/format.md §3, HEAD)."""
    writer.append("t", wire_batch((b"x", b"", 0)), properties={"UNIQ_KEY": "wrapper", "WAIT": "true"})
    assert stored_records(writer.root)[0].properties == b""


@pytest.mark.parametrize(
    ("given", "stored", "second_stored"),
    [
        (b"", b"UNIQ_KEY\x01r1\x02", b"UNIQ_KEY\x01r1#1\x02"),
        (b"a\x011\x02", b"a\x011\x02UNIQ_KEY\x01r1\x02", b"UNIQ_KEY\x01r1#1\x02"),
        (b"a\x011", b"a\x011\x02UNIQ_KEY\x01r1\x02", b"UNIQ_KEY\x01r1#1\x02"),
        (b"UNIQ_KEY\x01own\x02", b"UNIQ_KEY\x01own\x02", b"UNIQ_KEY\x01own#1\x02"),
    ],
    ids=["none", "closed", "open end", "own key"],
)
def test_request_id_becomes_the_unique_key_of_each_message(
    writer: RunningWriter, given: bytes, stored: bytes, second_stored: bytes
) -> None:
    """It is appended, after a separator if the text lacks one, unless the message has its own key."""
    writer.append("t", wire_batch((b"x", given, 0), (b"y", b"", 0)), request_id="r1")
    first, second = stored_records(writer.root)
    assert (first.properties, second.properties) == (stored, second_stored)


@pytest.mark.parametrize("form", ["packed", "messages"])
def test_each_message_of_an_inner_batch_has_a_unique_key(writer: RunningWriter, form: str) -> None:
    """The wrapper keeps the request id; the elements of its body have keys that are derived from it."""
    writer.topics.CreateTopic(topics_pb2.CreateTopicRequest(name="t", attributes={"queue.type": "BatchCQ"}))
    if form == "packed":
        writer.append("t", wire_batch(*[(b"%d" % n, b"", 0) for n in range(12)]), request_id="r1")
    else:
        messages = pb.MessageList(messages=[pb.Message(body=b"%d" % n) for n in range(12)])
        writer.append("t", messages=messages, request_id="r1")
    (record,) = stored_records(writer.root)
    assert decode_properties(record.properties)["UNIQ_KEY"] == "r1"
    elements = list(decode_elements(record.body))
    assert [element.body for element in elements] == [b"%d" % n for n in range(12)]
    keys = [decode_properties(element.properties)["UNIQ_KEY"] for element in elements]
    assert keys == ["r1", *(f"r1#{n}" for n in range(1, 12))]


def test_a_batch_without_request_id_gets_no_keys(writer: RunningWriter) -> None:
    """Its bytes are stored unchanged."""
    writer.append("t", wire_batch((b"x", b"UNIQ_KEY\x01own\x02", 0), (b"y", b"", 0)))
    assert [record.properties for record in stored_records(writer.root)] == [b"UNIQ_KEY\x01own\x02", b""]


def test_a_batch_of_4_mib_without_keys_is_stored_with_them(tmp_path: Path) -> None:
    """The keys do not count towards the limit of the wire batch."""
    each = (4 << 20) // 64
    with RunningWriter(tmp_path, commit_log_segment_size_bytes=16 << 20) as writer:
        answer = writer.append("t", wire_batch(*[(bytes(each - 22), b"", 0)] * 64), request_id="r1")
        assert answer.message_count == 64
        stored = [decode_properties(record.properties)["UNIQ_KEY"] for record in stored_records(tmp_path)]
    assert stored == ["r1", *(f"r1#{n}" for n in range(1, 64))]


def test_a_message_without_room_for_its_key_is_refused_with_its_number(writer: RunningWriter) -> None:
    """Nothing of the batch is stored."""
    overlong = properties({"p": "v" * (32_767 - 3)})
    refusal = refusal_of(lambda: writer.append("t", wire_batch((b"x", b"", 0), (b"y", overlong, 0)), request_id="r1"))
    assert (refusal.reason, refusal.facts["at"]) == ("PROPERTIES_SIZE_EXCEEDED", "1")
    assert stored_records(writer.root) == []


def test_ipv6_hosts_take_twenty_bytes_and_set_their_flags(tmp_path: Path) -> None:
    """Born ::1 and a store host of 16 address bytes: the record has sys_flag 0x30 and 24 more bytes."""
    with RunningWriter(tmp_path, writer_listen="[::1]:0", advertised_address="[1050::5:600:300c:326b]:10911") as writer:
        answer = writer.append("t", wire_batch((b"x", b"", 0)))
        (record,) = stored_records(tmp_path)
    assert answer.end_physical_offset == 91 + 24 + 1 + 1
    assert record.sys_flag == 0x30
    assert record.born_host[:16] == bytes(15) + b"\x01"
    assert record.store_host == answer.store_host == bytes.fromhex("105000000000000000050600300c326b00002a9f")


def test_body_whose_crc_is_zero_survives_a_restart(tmp_path: Path) -> None:
    """0 is a valid CRC (RocketMQ #9121)."""
    with RunningWriter(tmp_path) as writer:
        end = writer.append("t", wire_batch((BODY_OF_CRC_0, b"", 0))).end_physical_offset
    with RunningWriter(tmp_path) as writer:
        assert writer.info().recovered_end_offset == end
        assert writer.append("t", wire_batch((b"x", b"", 0))).queue_offset == 1


def test_queue_offsets_are_dense_in_each_queue(writer: RunningWriter) -> None:
    """Batches of several sizes to several queues number each queue 0, 1, 2, ... without a hole."""
    for number in range(30):
        writer.append("t", wire_batch(*[(b"x", b"", 0)] * (number % 4 + 1)), queue_id=number % 3)
    for queue_id in range(3):
        offsets = [record.queue_offset for record in stored_records(writer.root) if record.queue_id == queue_id]
        assert offsets == list(range(len(offsets)))


def test_store_timestamps_of_appends_never_decrease(writer: RunningWriter) -> None:
    """No record is older than the previous one."""
    for _ in range(20):
        writer.append("t", W)
    times = [record.store_timestamp for record in stored_records(writer.root)]
    assert times == sorted(times)
    assert all(times)


def test_the_queue_is_chosen_by_routing_key_first_key_or_round_robin(writer: RunningWriter) -> None:
    """It is |hash| mod 4 of the routing key, otherwise of the first message's first key, otherwise round robin."""

    def chosen(keys: list[str], routing_key: str = "") -> int:
        messages = pb.MessageList(messages=[pb.Message(body=b"x", keys=keys)])
        request = pb.AppendBatchRequest(topic="t", messages=messages, routing_key=routing_key)
        return int(writer.log.AppendBatch(request).queue_id)

    for key in ("a", "BatchTest#OrderID001", "polygenelubricants", "ключ"):
        assert chosen([], key) == abs(java_hash(key)) % 4
        assert chosen([key, "other"]) == abs(java_hash(key)) % 4
        assert chosen(["other"], key) == abs(java_hash(key)) % 4
    turns = [chosen([]) for _ in range(8)]
    assert turns == [(turns[0] + i) % 4 for i in range(8)]


def test_a_batch_that_does_not_fit_goes_to_the_next_file_whole(writer: RunningWriter) -> None:
    """The file ends with a blank record of 8 bytes, the batch starts the next file, and the numbering continues."""
    big = wire_batch(*[(bytes([65 + i]) * 100_000, b"", 0) for i in range(4)])
    answers = [writer.append("t", big) for _ in range(4)]
    files = log_bytes(writer.root)
    end = answers[1].end_physical_offset
    assert answers[2].physical_offset == 1 << 20
    assert files[0][end : end + 8] == struct.pack(">ii", (1 << 20) - end, -875286124)
    assert not any(files[0][end + 8 :])
    assert [answer.queue_offset for answer in answers] == [0, 4, 8, 12]
    assert [record.queue_offset for record in stored_records(writer.root)] == list(range(16))
    assert [len(files[start]) for start in (0, 1 << 20)] == [1 << 20, 1 << 20]  # a third one may be in preparation


def test_a_record_may_fill_its_file_except_for_eight_bytes(writer: RunningWriter) -> None:
    """The largest record is the file's size less the blank record's 8 bytes; the next batch rolls."""
    body = bytes(range(256)) * 4096
    size = (1 << 20) - 8 - 91 - 1
    answer = writer.append("t", wire_batch((body[:size], b"", 0)))
    assert answer.end_physical_offset == (1 << 20) - 8
    after = writer.append("t", wire_batch((b"x", b"", 0)))
    assert after.physical_offset == 1 << 20
    assert log_bytes(writer.root)[0][-8:] == struct.pack(">ii", 8, -875286124)


def test_a_batch_of_many_small_messages_is_stored_whole(tmp_path: Path) -> None:
    """Records of 20,000 tiny messages, larger than the write buffer, are contiguous."""
    with RunningWriter(tmp_path, commit_log_segment_size_bytes=8 << 20, write_buffer_size_bytes=1 << 16) as writer:
        answer = writer.append("t", wire_batch((b"x", b"", 0)) * 20_000)
        assert answer.message_count == 20_000
        assert answer.end_physical_offset == 20_000 * (91 + 1 + 1)
        assert struct.unpack(">20000q", answer.physical_offsets) == tuple(range(0, 20_000 * 93, 93))
    assert [record.queue_offset for record in stored_records(tmp_path)] == list(range(20_000))
