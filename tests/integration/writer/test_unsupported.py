"""Requests for features that this store lacks are refused, in each form of a request and each spelling of RocketMQ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.builders import properties, wire_batch
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1 import topics_pb2

from .harness import Refusal, RunningWriter, log_bytes, refusal_of, stored_records

pytestmark = pytest.mark.integration

PLAIN = (b"x", b"", 0)
TRANSACTIONS = [("TRAN_MSG", text) for text in ("true", "TRUE", "True", "tRuE")]
TIMERS = [
    ("__STARTDELIVERTIME", "1790000000000"),
    ("TIMER_DELAY_MS", "5"),
    ("TIMER_DELAY_SEC", "5"),
    ("TIMER_DELIVER_MS", "1790000000000"),
    ("TIMER_OUT_MS", "1790000000000"),
    ("TIMER_ENQUEUE_MS", "1"),
    ("TIMER_DEQUEUE_MS", "1"),
    ("TIMER_ROLL_TIMES", "1"),
    ("TIMER_DEL_UNIQKEY", "k"),
    ("TIMER_DELAY_LEVEL", "3"),
]
Form = Callable[[str, str], pb.AppendBatchRequest]


def _packed(*elements: tuple[bytes, bytes, int]) -> pb.AppendBatchRequest:
    return pb.AppendBatchRequest(packed=wire_batch(*elements), queue_id=0)


def _messages(count: int, name: str, value: str) -> pb.AppendBatchRequest:
    messages = [pb.Message(body=b"x") for _ in range(count)]
    messages[-1].properties[name] = value
    return pb.AppendBatchRequest(messages=pb.MessageList(messages=messages), queue_id=0)


def _wrapper(name: str, value: str, *elements: tuple[bytes, bytes, int]) -> pb.AppendBatchRequest:
    return pb.AppendBatchRequest(packed=wire_batch(*elements), queue_id=0, properties={name: value})


FORMS: dict[str, Form] = {
    "single packed": lambda name, value: _packed((b"x", properties({name: value}), 0)),
    "first of a batch": lambda name, value: _packed((b"x", properties({name: value}), 0), PLAIN),
    "last of a batch": lambda name, value: _packed(PLAIN, PLAIN, (b"x", properties({"a": "b", name: value}), 0)),
    "single message": lambda name, value: _messages(1, name, value),
    "last message": lambda name, value: _messages(3, name, value),
    "request of one": lambda name, value: _wrapper(name, value, PLAIN),
    "request of two": lambda name, value: _wrapper(name, value, PLAIN, PLAIN),
}


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWriter]:
    """Run a writer with a topic of single messages, `s`, and one of inner batches, `b`."""
    with RunningWriter(tmp_path_factory.mktemp("store")) as running:
        running.topics.CreateTopic(topics_pb2.CreateTopicRequest(name="s"))
        running.topics.CreateTopic(topics_pb2.CreateTopicRequest(name="b", attributes={"queue.type": "BatchCQ"}))
        yield running


def refused(writer: RunningWriter, request: pb.AppendBatchRequest) -> list[Refusal]:
    """Refusals of *request* by AppendBatch and by AppendStream; nothing is written."""
    before = log_bytes(writer.root)
    alone = refusal_of(lambda: writer.log.AppendBatch(request, timeout=10))
    entry = pb.AppendStreamRequest.Entry(correlation_id=1, batch=request)
    answers = writer.log.AppendStream(iter([pb.AppendStreamRequest(batches=[entry])]), timeout=10)
    (result,) = next(iter(answers)).results
    assert result.WhichOneof("outcome") == "error"
    assert log_bytes(writer.root) == before
    return [alone, Refusal(result.error)]


@pytest.mark.parametrize("topic", ["s", "b"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(("name", "value"), TRANSACTIONS)
def test_transactional_message_is_refused(writer: RunningWriter, topic: str, form: Form, name: str, value: str) -> None:
    """Any case of the word true counts; the error names the property and the remedy."""
    request = form(name, value)
    request.topic = topic
    for refusal in refused(writer, request):
        assert (refusal.code.name, refusal.reason) == ("INVALID_ARGUMENT", "BATCH_TRANSACTION")
        assert refusal.facts["name"] == name
        assert f"without {name}" in refusal.message


@pytest.mark.parametrize("topic", ["s", "b"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(("name", "value"), TIMERS)
def test_timer_message_is_refused(writer: RunningWriter, topic: str, form: Form, name: str, value: str) -> None:
    """The names are all those by which a client or broker times a delivery."""
    request = form(name, value)
    request.topic = topic
    for refusal in refused(writer, request):
        assert (refusal.code.name, refusal.reason) == ("INVALID_ARGUMENT", "BATCH_DELAY")


@pytest.mark.parametrize("topic", ["s", "b"])
@pytest.mark.parametrize("flags", [0x4, 0x8, 0xC])
@pytest.mark.parametrize("producer_group", [{}, {"PGROUP": "g"}])
def test_flags_of_a_transaction_are_refused(
    writer: RunningWriter, topic: str, flags: int, producer_group: dict[str, str]
) -> None:
    """They are prepared, committed and rolled back, with and without the producer group of a transaction."""
    request = _packed((b"x", properties(producer_group), 0))
    request.topic, request.sys_flag = topic, flags
    for refusal in refused(writer, request):
        assert refusal.reason == "BATCH_TRANSACTION"


@pytest.mark.parametrize(
    "given",
    [
        {"TRAN_MSG": "false"},
        {"TRAN_MSG": "yes"},
        {"TRAN_MSGS": "true"},
        {"PGROUP": "g"},
        {"TIMER": "5"},
        {"__SHARDINGKEY": "k"},
    ],
    ids=str,
)
def test_other_property_is_stored(writer: RunningWriter, given: dict[str, str]) -> None:
    """The value is not true for Java, or the name only resembles one of RocketMQ's."""
    before = len(stored_records(writer.root))
    for topic in ("s", "b"):
        writer.append(topic, wire_batch(PLAIN, (b"y", properties(given), 0)))
        writer.append(topic, wire_batch(PLAIN), properties=given)
    assert len(stored_records(writer.root)) == before + 5


def test_retry_keeps_the_properties_with_which_its_message_was_stored(tmp_path: Path) -> None:
    """A group sends back a message that a broker has stored, where these properties no longer have an effect."""
    given = properties({"TRAN_MSG": "true", "TIMER_DELIVER_MS": "5", "__STARTDELIVERTIME": "5"})
    with RunningWriter(tmp_path) as writer:
        writer.append("%RETRY%g", wire_batch((b"x", given, 0)), reconsume_times=1)
        writer.append("%DLQ%g", wire_batch((b"x", given, 0)), reconsume_times=2)
        assert refusal_of(lambda: writer.append("%RETRY%g", wire_batch((b"x", given, 0)))).reason == "BATCH_TRANSACTION"
        assert refusal_of(lambda: writer.append("t", wire_batch((b"x", given, 0)), reconsume_times=1)).reason == (
            "BATCH_TRANSACTION"
        )
