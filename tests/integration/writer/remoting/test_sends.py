"""Messages and batches of RocketMQ's producers: they are stored as those of gRPC, and answered as by a broker."""

from __future__ import annotations

import json
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.builders import properties, wire_batch
from tests.conformance.remoting.traces import FOLDER
from tests.integration.writer.harness import ADVERTISED, RunningWriter, stored_records
from tests.remoting_client import RemotingClient
from tests.waiting import until
from tidemark.format.host import decode_host
from tidemark.format.message_id import decode_offset_message_id
from tidemark.format.properties import decode_properties
from tidemark.format.record import Record
from tidemark.remoting import Frame, RequestCode
from tidemark.remoting.codes import Serialization
from tidemark.remoting.sending import SendAnswer, SendRequest, parse_send_answer, to_fields

from .conftest import LISTEN

pytestmark = pytest.mark.integration

SINGLE_CODES = (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2)
TWO = wire_batch((b"one", properties({"UNIQ_KEY": "k1", "TAGS": "a"}), 3), (b"two", properties({"UNIQ_KEY": "k2"}), 4))


def asked(topic: str = "t", given: dict[str, str] | None = None, **changed: Any) -> SendRequest:
    """Return the request of a message with the properties *given*."""
    request = SendRequest("producers", topic, 0, 0, 1_000, 0, properties=properties(given or {}).decode())
    return request._replace(**changed)


def send(client: RemotingClient, code: int, request: SendRequest, body: bytes) -> Frame:
    return client.call(code, to_fields(code, request), body)


def sent(client: RemotingClient, request: SendRequest, body: bytes = b"x") -> SendAnswer:
    answer = send(client, RequestCode.SEND_MESSAGE_V2, request, body)
    assert answer.code == 0, (answer.code, answer.remark)
    return parse_send_answer(answer.fields)


def of_topic(root: Path, topic: str = "t") -> list[Record]:
    return [record for record in stored_records(root) if record.topic == topic.encode()]


@pytest.mark.parametrize("code", SINGLE_CODES)
@pytest.mark.parametrize("serialization", Serialization)
def test_a_message_is_stored_with_all_its_values(
    writer: RunningWriter, client: RemotingClient, code: int, serialization: Serialization
) -> None:
    """The answer has its place; its id is of the advertised address."""
    given = {"UNIQ_KEY": "k", "TAGS": "tag", "KEYS": "a b", "own": "ü\U0001f30a"}
    request = asked("orders", given, queue_id=2, flag=7, born_timestamp=1_700_000_000_123)
    client.send(code, to_fields(code, request), b"\x00body\xff", serialization=serialization)
    answer = client.receive()
    (record,) = of_topic(writer.root, "orders")
    assert (record.body, record.properties) == (b"\x00body\xff", properties(given))
    assert (record.queue_id, record.queue_offset, record.flag, record.sys_flag) == (2, 0, 7, 0)
    assert (record.born_timestamp, record.reconsume_times) == (1_700_000_000_123, 0)
    host = decode_host(record.born_host)
    assert (host.address, host.port) == client.socket.getsockname()
    assert str(decode_host(record.store_host)) == ADVERTISED
    assert (answer.code, answer.remark, bytes(answer.body)) == (0, "", b"")
    assert answer.serialization is Serialization.JSON
    assert answer.fields == {
        "msgId": f"C0A8074100002A9F{record.physical_offset:016X}",
        "queueId": "2",
        "queueOffset": "0",
        "transactionId": "k",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "false",
    }


def test_both_serialisations_alternate_on_one_connection(writer: RunningWriter, client: RemotingClient) -> None:
    for number in range(10):
        fields = to_fields(310, asked())
        client.send(310, fields, b"%d" % number, serialization=Serialization(number % 2))
    assert [int(client.receive().fields["queueOffset"]) for _ in range(10)] == list(range(10))
    assert [record.body for record in of_topic(writer.root)] == [b"%d" % number for number in range(10)]


@pytest.mark.parametrize("code", SINGLE_CODES)
def test_a_one_way_message_is_stored_and_not_answered(writer: RunningWriter, client: RemotingClient, code: int) -> None:
    """Neither is a refused one."""
    client.send(code, to_fields(code, asked()), b"one way", one_way=True)
    client.send(code, to_fields(code, asked(queue_id=99)), b"refused", one_way=True)
    client.send(code, {"a": "nothing else"}, b"refused", one_way=True)
    assert sent(client, asked(), b"answered").queue_offset == 1
    assert [record.body for record in of_topic(writer.root)] == [b"one way", b"answered"]


@pytest.mark.parametrize("code", [310, 320])
def test_a_batch_has_one_answer_and_consecutive_offsets(
    writer: RunningWriter, client: RemotingClient, code: int
) -> None:
    """Java's producer marks it by the code or by a field."""
    sent(client, asked(), b"before")
    answer = send(client, code, asked(batch=code == 310, given={"UNIQ_KEY": "batch", "WAIT": "true"}), TWO)
    assert answer.code == 0, answer.remark
    found = parse_send_answer(answer.fields)
    _, one, two = of_topic(writer.root)
    assert [(record.body, record.queue_offset, record.flag) for record in (one, two)] == [
        (b"one", 1, 3),
        (b"two", 2, 4),
    ]
    assert [decode_properties(record.properties)["UNIQ_KEY"] for record in (one, two)] == ["k1", "k2"]
    assert found.queue_offset == 1
    assert [decode_offset_message_id(text).physical_offset for text in found.message_ids] == [
        one.physical_offset,
        two.physical_offset,
    ]
    assert all(text.startswith("C0A8074100002A9F") for text in found.message_ids)


@pytest.mark.parametrize(
    "body",
    [
        TWO[:-1],
        TWO + b"\0",
        b"",
        b"\0\0\0\1",
        wire_batch((b"one", b"", 0), (b"", b"", 0)),
        wire_batch((b"one", b"", 0), (b"two", properties({"DELAY": "1"}), 0)),
        wire_batch((b"one", b"", 0), (b"two", properties({"TRAN_MSG": "true"}), 0)),
    ],
    ids=["cut", "rest", "empty", "length", "empty body", "delay", "transaction"],
)
def test_a_batch_with_one_illegal_message_is_refused_whole(
    writer: RunningWriter, client: RemotingClient, body: bytes
) -> None:
    answer = send(client, RequestCode.SEND_BATCH_MESSAGE, asked(batch=True), body)
    assert answer.code in (13, 16), answer.remark
    assert of_topic(writer.root) == []
    assert sent(client, asked()).queue_offset == 0


def test_a_message_equals_the_one_that_grpc_stores(writer: RunningWriter, client: RemotingClient) -> None:
    """Each byte of the records, apart from places, times and the sender's address."""
    given = {"UNIQ_KEY": "k", "TAGS": "tag", "KEYS": "key", "DELAY": "0"}
    sent(client, asked("a", given, queue_id=1, flag=9, sys_flag=0x301), zlib.compress(b"body"))
    send(client, 320, asked("a", batch=True, queue_id=1, flag=9), TWO)
    one = wire_batch((zlib.compress(b"body"), properties(given), 9))
    writer.append("b", one, queue_id=1, born_timestamp_ms=1_000, sys_flag=0x301, flag=9)
    writer.append("b", TWO, queue_id=1, born_timestamp_ms=1_000, flag=9)
    by_remoting, by_grpc = of_topic(writer.root, "a"), of_topic(writer.root, "b")
    assert len(by_remoting) == len(by_grpc) == 3
    own: dict[str, Any] = {"topic": b"", "physical_offset": 0, "store_timestamp": 0, "born_host": b""}
    for ours, theirs in zip(by_remoting, by_grpc, strict=True):
        assert ours._replace(**own) == theirs._replace(**own)


@pytest.mark.parametrize("sys_flag", [0x1, 0x101, 0x201, 0x301])
def test_a_compressed_body_and_its_flags_are_stored_unchanged(
    writer: RunningWriter, client: RemotingClient, sys_flag: int
) -> None:
    """It is not inflated: consumers do that by the flags."""
    body = zlib.compress(bytes(100_000))
    sent(client, asked(sys_flag=sys_flag), body)
    (record,) = of_topic(writer.root)
    assert (record.body, record.sys_flag) == (body, sys_flag)


@pytest.mark.parametrize(
    ("given", "has_one"),
    [
        ({}, False),
        ({"TAGS": "a"}, False),
        ({"MY_UNIQ_KEY": "x"}, False),
        ({"x": "UNIQ_KEY"}, False),
        ({"UNIQ_KEY": "k"}, True),
        ({"TAGS": "a", "UNIQ_KEY": "k"}, True),
    ],
)
def test_a_unique_key_is_added_only_if_there_is_none(
    writer: RunningWriter, client: RemotingClient, given: dict[str, str], has_one: bool
) -> None:
    """Other names may end with it. The answer's transaction id is the key."""
    answer = sent(client, asked(given=given))
    (record,) = of_topic(writer.root)
    stored = decode_properties(record.properties)
    if has_one:
        assert record.properties == properties(given)
    else:
        assert len(stored["UNIQ_KEY"]) == 32
        assert record.properties.startswith(properties(given))
    assert answer.transaction_id == stored["UNIQ_KEY"]


def test_properties_without_their_last_separator_get_a_unique_key(
    writer: RunningWriter, client: RemotingClient
) -> None:
    sent(client, asked(properties="a\x01b"))
    (record,) = of_topic(writer.root)
    assert decode_properties(record.properties).keys() == {"a", "UNIQ_KEY"}


def test_a_repeat_of_a_message_is_answered_with_its_first_place(writer: RunningWriter, client: RemotingClient) -> None:
    """A producer sends it again when the first answer was lost."""
    given = {"UNIQ_KEY": "k"}
    answers = [sent(client, asked(given=given)) for _ in range(3)]
    with RemotingClient(writer.remoting_port) as other:
        answers.append(sent(other, asked(given=given, born_timestamp=2_000)))
    assert len(set(answers)) == 1
    batches = [send(client, 320, asked(batch=True), TWO).fields for _ in range(2)]
    assert batches[0] == batches[1]
    assert len(of_topic(writer.root)) == 3


def test_the_writer_chooses_the_queue_of_minus_one(writer: RunningWriter, client: RemotingClient) -> None:
    answers = [sent(client, asked(queue_id=-1)) for _ in range(8)]
    queues = [answer.queue_id for answer in answers]
    assert [number % 4 for number in range(queues[0], queues[0] + 8)] == queues
    assert [record.queue_id for record in of_topic(writer.root)] == queues


def test_the_first_message_creates_its_topic(writer: RunningWriter, client: RemotingClient) -> None:
    """Many at once create it once."""
    for number in range(50):
        client.send(310, to_fields(310, asked("new", queue_id=number % 4)), b"x")
    assert {client.receive().code for _ in range(50)} == {0}
    topics = json.loads((writer.root / "config" / "topics.json").read_bytes())["topicConfigTable"]
    assert topics["new"]["writeQueueNums"] == 4


@pytest.mark.parametrize(("level", "queue"), [("1", 0), ("4", 3), ("18", 17), ("40", 17)])
def test_a_delayed_message_is_answered_at_once_and_waits(
    writer: RunningWriter, client: RemotingClient, level: str, queue: int
) -> None:
    """Levels above the last one count as the last one."""
    answer = sent(client, asked(given={"DELAY": level}, queue_id=1))
    (record,) = of_topic(writer.root, "SCHEDULE_TOPIC_XXXX")
    assert (record.queue_id, answer.queue_offset) == (queue, 0)
    stored = decode_properties(record.properties)
    assert (stored["REAL_TOPIC"], stored["REAL_QID"]) == ("t", "1")
    assert of_topic(writer.root) == []


@pytest.mark.parametrize(
    ("tries", "limit", "is_dead"),
    [(2, 2, False), (3, 2, True), (0, 0, False), (1, 0, True), (16, None, False), (17, None, True)],
)
def test_a_retry_above_its_limit_is_a_dead_letter(
    writer: RunningWriter, client: RemotingClient, tries: int, limit: int | None, is_dead: bool
) -> None:
    """The client has counted the next try already. A dead letter waits for nothing."""
    given = {"UNIQ_KEY": "k", "RETRY_TOPIC": "t", "DELAY": "3"}
    request = asked("%RETRY%g", given, reconsume_times=tries, max_reconsume_times=limit)
    answer = sent(client, request, b"failed")
    dead, waiting = of_topic(writer.root, "%DLQ%g"), of_topic(writer.root, "SCHEDULE_TOPIC_XXXX")
    assert (len(dead), len(waiting)) == ((1, 0) if is_dead else (0, 1))
    (record,) = dead or waiting
    assert (record.body, record.reconsume_times) == (b"failed", tries)
    stored = decode_properties(record.properties)
    assert (stored["UNIQ_KEY"], stored["RETRY_TOPIC"]) == ("k", "t")
    if is_dead:
        assert (record.queue_id, answer.queue_id, answer.queue_offset) == (0, 0, 0)
        assert "DELAY" not in stored


def test_requests_of_real_clients_are_stored(writer: RunningWriter, client: RemotingClient) -> None:
    """Headers that were captured from RocketMQ's Java and Go clients; transactions and batches are not among them."""
    count = 0
    for name in ("java-5.3.3.jsonl", "go-v2.1.3.jsonl"):
        for line in (FOLDER / name).read_text().splitlines():
            header = json.loads(line)["request"]
            fields = header.get("extFields", {})
            if header["code"] not in SINGLE_CODES or fields.get("m") == "true" or "TRAN_MSG" in str(fields):
                continue
            answer = client.call(header["code"], fields, b"body")
            assert answer.code == 0, (fields, answer.remark)
            count += 1
    assert count > 4
    assert {record.body for record in stored_records(writer.root)} == {b"body"}


def test_a_message_that_does_not_wait_for_the_flush_is_stored(writer: RunningWriter, client: RemotingClient) -> None:
    sent(client, asked(given={"WAIT": "false"}))
    assert len(of_topic(writer.root)) == 1


def test_the_greatest_sizes_are_stored(tmp_path: Path) -> None:
    """The largest body and the longest properties."""
    with (
        RunningWriter(tmp_path, writer_remoting_listen=LISTEN, commit_log_segment_size_bytes=16 << 20) as writer,
        RemotingClient(writer.remoting_port) as client,
    ):
        limit = writer.settings.max_message_size_bytes
        sent(client, asked(), b"x" * limit)
        longest = properties({"UNIQ_KEY": "k", "a": "v" * (32_767 - 15)})
        assert len(longest) == 32_767 - 1
        sent(client, asked(properties=longest.decode()))
        assert [len(record.body) for record in of_topic(writer.root)] == [limit, 1]


def test_a_delayed_message_is_delivered_to_its_queue(writer: RunningWriter, client: RemotingClient) -> None:
    """Through the pipeline's epochs, as one of gRPC."""
    from tests.integration.writer.test_delay import index

    sent(client, asked(given={"DELAY": "1", "UNIQ_KEY": "k"}, queue_id=2), b"later")
    time.sleep(0.1)
    index(writer.root)
    until(lambda: len(of_topic(writer.root)) == 1)
    (record,) = of_topic(writer.root)
    assert (record.body, record.queue_id, record.queue_offset) == (b"later", 2, 0)
    assert decode_host(record.born_host).address == "127.0.0.1"
