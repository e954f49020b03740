"""Refused sends: each has RocketMQ's code, on which clients decide to repeat it, and nothing of it is stored."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.builders import properties, wire_batch
from tests.integration.writer.faulty_storage import FaultyStorage, full_for_records
from tests.integration.writer.harness import RunningWriter, log_bytes, stored_records
from tests.remoting_client import RemotingClient
from tidemark.remoting import Frame
from tidemark.remoting.sending import SendRequest, to_fields
from tidemark.store.originals.topics import TopicConfig, save_topics
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

from .conftest import LISTEN
from .test_sends import TWO, asked, of_topic, send, sent

pytestmark = pytest.mark.integration

SYSTEM_ERROR, SYSTEM_BUSY, NOT_SUPPORTED, FLUSH_TIMEOUT, ILLEGAL, NOT_AVAILABLE = 1, 2, 3, 10, 13, 14
NO_PERMISSION, NO_TOPIC, PARAMETER, GO_AWAY = 16, 17, 29, 1500
LIMIT = 10_000


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWriter]:
    """Run a writer with topics that cannot be written or whose shape refuses messages."""
    root = tmp_path_factory.mktemp("refused") / "store"
    save_topics(
        StorePaths(root).topics,
        {
            "t": TopicConfig("t", 4, 4),
            "r": TopicConfig("r", 4, 4, permission=4),
        },
        DiskStorage(),
        counter=1,
    )
    given: dict[str, Any] = {
        "auto_create_topics": False,
        "max_message_size_bytes": LIMIT,
        "writer_remoting_listen": LISTEN,
    }
    with RunningWriter(root, **given) as running:
        yield running


CASES: dict[str, tuple[SendRequest, bytes, int, str]] = {
    "body above the limit": (asked(), bytes(LIMIT + 1), ILLEGAL, "MESSAGE_SIZE_EXCEEDED"),
    "empty body": (asked(), b"", ILLEGAL, "BATCH_EMPTY"),
    "long properties": (asked(given={"UNIQ_KEY": "k", "a": "x" * 32_767}), b"x", ILLEGAL, "PROPERTIES_SIZE_EXCEEDED"),
    "long properties with the key": (asked(given={"a": "x" * 32_750}), b"x", ILLEGAL, "PROPERTIES_SIZE_EXCEEDED"),
    "properties of many bytes": (asked(given={"a": "\U0001f30a" * 9_000}), b"x", ILLEGAL, "PROPERTIES_SIZE_EXCEEDED"),
    "timer": (asked(given={"TIMER_DELIVER_MS": "9"}), b"x", ILLEGAL, "BATCH_DELAY"),
    "timer of seconds": (asked(given={"TIMER_DELAY_SEC": "9"}), b"x", ILLEGAL, "BATCH_DELAY"),
    "CRC": (asked(given={"__CRC32#": "9"}), b"x", ILLEGAL, "PROPERTIES_ILLEGAL"),
    "inner batch": (asked(sys_flag=0x80), b"x", ILLEGAL, "INNER_BATCH_ILLEGAL"),
    "transaction by its flag": (asked(sys_flag=4), b"x", NO_PERMISSION, "BATCH_TRANSACTION"),
    "transaction by its property": (asked(given={"TRAN_MSG": "true"}), b"x", NO_PERMISSION, "BATCH_TRANSACTION"),
    "system topic": (asked("SCHEDULE_TOPIC_XXXX"), b"x", NO_PERMISSION, "TOPIC_FORBIDDEN"),
    "half topic": (asked("RMQ_SYS_TRANS_HALF_TOPIC"), b"x", NO_PERMISSION, "TOPIC_FORBIDDEN"),
    "read-only topic": (asked("r"), b"x", NO_PERMISSION, "TOPIC_FORBIDDEN"),
    "unknown topic": (asked("unknown"), b"x", NO_TOPIC, "TOPIC_NOT_FOUND"),
    "queue above": (asked(queue_id=4), b"x", PARAMETER, "QUEUE_ID_ILLEGAL"),
    "queue below": (asked(queue_id=-2), b"x", PARAMETER, "QUEUE_ID_ILLEGAL"),
    "empty topic": (asked(""), b"x", PARAMETER, "TOPIC_ILLEGAL"),
    "illegal topic": (asked("../t"), b"x", PARAMETER, "TOPIC_ILLEGAL"),
    "long topic": (asked("t" * 128), b"x", PARAMETER, "TOPIC_ILLEGAL"),
    "very long topic": (asked("\x01" * 500_000), b"x", PARAMETER, "TOPIC_ILLEGAL"),
    "retry topic without a group": (asked("%RETRY%"), b"x", PARAMETER, "TOPIC_ILLEGAL"),
    "negative tries": (asked(reconsume_times=-1), b"x", PARAMETER, "ARGUMENT_ILLEGAL"),
    "negative time": (asked(born_timestamp=-1), b"x", PARAMETER, "ARGUMENT_ILLEGAL"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_refused_send_has_its_code_and_stores_nothing(refusing: RunningWriter, case: str) -> None:
    """The connection stays in use. The remark is one line for users."""
    request, body, code, reason = CASES[case]
    before = log_bytes(refusing.root)
    with RemotingClient(refusing.remoting_port) as client:
        for number in (10, 310):
            answer = send(client, number, request, body)
            assert (answer.code, answer.fields["tidemarkReason"]) == (code, reason), answer.remark
            assert answer.remark
            assert "\n" not in answer.remark
            assert len(answer.remark) <= 1_000
            assert "queueOffset" not in answer.fields
        assert send(client, 310, asked(queue_id=-5), b"x").code == PARAMETER
    assert log_bytes(refusing.root) == before


BATCHES: dict[str, tuple[SendRequest, bytes, int]] = {
    "to a retry topic": (asked("%RETRY%g"), TWO, ILLEGAL),
    "with a delay": (asked(given={"DELAY": "3"}), TWO, ILLEGAL),
    "with a transaction": (asked(sys_flag=8), TWO, NO_PERMISSION),
    "above the limit": (asked(), wire_batch((bytes(6_000), b"", 0), (bytes(6_000), b"", 0)), ILLEGAL),
    "with different waits": (
        asked(),
        wire_batch((b"a", properties({"WAIT": "false"}), 0), (b"b", properties({"WAIT": "true"}), 0)),
        PARAMETER,
    ),
}


@pytest.mark.parametrize("case", BATCHES)
def test_a_refused_batch_stores_nothing(tmp_path: Path, case: str) -> None:
    request, body, code = BATCHES[case]
    given: dict[str, Any] = {"max_message_size_bytes": LIMIT, "writer_remoting_listen": LISTEN}
    with RunningWriter(tmp_path, **given) as writer, RemotingClient(writer.remoting_port) as client:
        assert send(client, 320, request._replace(batch=True), body).code == code
        assert stored_records(tmp_path) == []


@pytest.mark.parametrize("field", ["a", "b", "e", "f", "g", "h"])
def test_a_required_field_is_missed_by_its_name(refusing: RunningWriter, field: str) -> None:
    """Also a value that is no number of the field's size."""
    fields = to_fields(310, asked())
    with RemotingClient(refusing.remoting_port) as client:
        missing = client.call(310, {name: value for name, value in fields.items() if name != field}, b"x")
        assert (missing.code, missing.fields["tidemarkReason"]) == (SYSTEM_ERROR, "FIELD_ILLEGAL")
        assert f"({field}) is missing" in missing.remark
        if field in "efgh":
            for value in ("", "x", "1.0", "9" * 30, " 1"):
                wrong = client.call(310, {**fields, field: value}, b"x")
                assert (wrong.code, orjson.loads(wrong.fields["tidemarkFacts"])["field"]) == (SYSTEM_ERROR, field)


@pytest.mark.parametrize(
    ("code", "response", "says"),
    [
        (11, NO_PERMISSION, "read from the query service"),
        (361, NO_PERMISSION, "read from"),
        (14, NO_PERMISSION, "read from"),
        (15, NO_PERMISSION, "read from"),
        (29, NO_PERMISSION, "read from"),
        (30, NO_PERMISSION, "read from"),
        (31, NO_PERMISSION, "read from"),
        (32, NO_PERMISSION, "read from"),
        (33, NO_PERMISSION, "read from"),
        (41, NO_PERMISSION, "read from"),
        (42, NO_PERMISSION, "read from"),
        (12, 22, "query service"),
        (36, NOT_SUPPORTED, "request type 36 not supported"),
        (37, NO_PERMISSION, "transactions"),
        (106, NOT_SUPPORTED, "106"),
        (324, NOT_SUPPORTED, "request-reply"),
        (370, NO_PERMISSION, "recall"),
        (400, NOT_SUPPORTED, "POP"),
    ],
)
def test_requests_of_readers_are_refused_with_the_place_to_read(
    refusing: RunningWriter, code: int, response: int, says: str
) -> None:
    """Clients add up the lookups (12) of all brokers: only the query service may have matches."""
    with RemotingClient(refusing.remoting_port) as client:
        answer = client.call(code, {"topic": "t", "queueId": "0"})
        assert answer.code == response
        assert says in answer.remark


def test_the_refusal_of_a_pull_names_the_address_of_the_query_service(tmp_path: Path) -> None:
    given: dict[str, Any] = {"writer_remoting_listen": LISTEN, "query_remoting_address": "query.example:10912"}
    with RunningWriter(tmp_path, **given) as writer, RemotingClient(writer.remoting_port) as client:
        assert "query.example:10912" in client.call(11).remark


def test_a_slow_flush_is_answered_flush_disk_timeout_with_the_place(tmp_path: Path) -> None:
    """It is stored, so that clients report it as sent and do not repeat it."""
    storage = FaultyStorage()
    given: dict[str, Any] = {"writer_remoting_listen": LISTEN, "sync_flush_timeout_ms": 1_000}
    with RunningWriter(tmp_path, storage, **given) as writer, RemotingClient(writer.remoting_port) as client:
        sent(client, asked())
        storage.fdatasync_gate.clear()
        answer = send(client, 310, asked(given={"UNIQ_KEY": "k"}), b"late")
        assert (answer.code, answer.fields["queueOffset"]) == (FLUSH_TIMEOUT, "1")
        storage.fdatasync_gate.set()
        assert send(client, 310, asked(given={"UNIQ_KEY": "k"}), b"late").fields["queueOffset"] == "1"
    assert [record.body for record in of_topic(tmp_path)] == [b"x", b"late"]


def test_a_full_disk_is_answered_not_available_and_later_sends_are_stored(tmp_path: Path) -> None:
    storage = FaultyStorage()
    with (
        RunningWriter(tmp_path, storage, writer_remoting_listen=LISTEN) as writer,
        RemotingClient(writer.remoting_port) as client,
    ):
        sent(client, asked(), b"1")
        storage.fail_pwrite = full_for_records
        answer = send(client, 310, asked(), b"2")
        assert (answer.code, answer.fields["tidemarkReason"]) == (NOT_AVAILABLE, "DISK_FULL")
        storage.fail_pwrite = lambda data: None
        assert sent(client, asked(), b"3").queue_offset == 1
    assert [record.body for record in of_topic(tmp_path)] == [b"1", b"3"]


def test_a_failed_flush_is_answered_system_error(tmp_path: Path) -> None:
    """The writer stops: the message may be stored, so it is not reported as such."""
    storage = FaultyStorage()
    with (
        RunningWriter(tmp_path, storage, writer_remoting_listen=LISTEN) as writer,
        RemotingClient(writer.remoting_port) as client,
    ):
        sent(client, asked())
        storage.fail_fdatasync = True
        answer = send(client, 310, asked(), b"lost")
        assert (answer.code, answer.fields["tidemarkReason"]) == (SYSTEM_ERROR, "FLUSH_FAILED")
        writer.wait_for_end()
        assert writer.failure is not None


def test_sends_above_the_bytes_in_flight_are_answered_busy(tmp_path: Path) -> None:
    """They are not stored; the others are."""
    storage = FaultyStorage()
    given: dict[str, Any] = {"max_message_size_bytes": LIMIT, "max_in_flight_bytes": 3 * LIMIT}
    given["writer_remoting_listen"] = LISTEN
    with RunningWriter(tmp_path, storage, **given) as writer, RemotingClient(writer.remoting_port) as client:
        sent(client, asked(), b"0")
        storage.fdatasync_gate.clear()
        for number in range(10):
            client.send(310, to_fields(310, asked()), b"%d" % number * 5_000)
        busy = client.receive()
        assert (busy.code, busy.fields["tidemarkReason"]) == (SYSTEM_BUSY, "IN_FLIGHT_LIMIT")
        storage.fdatasync_gate.set()
        answers = [busy, *(client.receive() for _ in range(9))]
    stored = [answer for answer in answers if answer.code == 0]
    assert {answer.code for answer in answers} == {0, SYSTEM_BUSY}
    assert len(of_topic(tmp_path)) == 1 + len(stored)


def answers_until_closed(client: RemotingClient) -> list[Frame]:
    """Return the answers until the server closes."""
    answers: list[Frame] = []
    try:
        while True:
            answers.append(client.receive())
    except ConnectionError:
        return answers


def test_a_stop_answers_the_sends_in_work_and_refuses_new_ones(tmp_path: Path) -> None:
    """Each has one answer: stored, not available, or go away. Exactly the messages with a success are stored."""
    storage = FaultyStorage()
    with (
        RunningWriter(tmp_path, storage, writer_remoting_listen=LISTEN) as writer,
        RemotingClient(writer.remoting_port) as client,
    ):
        sent(client, asked(), b"first")
        storage.fdatasync_gate.clear()
        waiting = [client.send(310, to_fields(310, asked()), b"w%d" % number) for number in range(20)]
        time.sleep(0.1)
        stopping = threading.Thread(target=writer.stop)
        stopping.start()
        time.sleep(0.3)
        late = [client.send(310, to_fields(310, asked()), b"l%d" % number) for number in range(5)]
        time.sleep(0.1)
        storage.fdatasync_gate.set()
        answers = answers_until_closed(client)
        stopping.join(30)
    by_opaque = {answer.opaque: answer.code for answer in answers}
    assert len(answers) == len(by_opaque)
    assert all(by_opaque[opaque] == 0 for opaque in waiting)
    assert {by_opaque[opaque] for opaque in late} <= {NOT_AVAILABLE, GO_AWAY}
    assert len(of_topic(tmp_path)) == 21
    assert writer.failure is None


def test_a_draining_writer_stores_sends(tmp_path: Path) -> None:
    with (
        RunningWriter(tmp_path, writer_remoting_listen=LISTEN, drain_ms=1_000) as writer,
        RemotingClient(writer.remoting_port) as client,
    ):
        stopping = threading.Thread(target=writer.stop)
        stopping.start()
        time.sleep(0.2)
        sent(client, asked(), b"late")
        assert answers_until_closed(client) == []
        stopping.join(30)
    assert [record.body for record in of_topic(tmp_path)] == [b"late"]
