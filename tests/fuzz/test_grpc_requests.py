"""Requests to a real writer with arbitrary field values: each response is a named one, and the log stays sound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message as ProtoMessage
from hypothesis import strategies as st

from tests import builders
from tests.fuzz.mutation import mutated
from tests.fuzz.target import fuzz
from tests.integration.writer.harness import Refusal, RunningWriter
from tests.property.strategies import I4, I8, wire_batches
from tidemark.index.check.scope import whole_store
from tidemark.index.check.store import check_store
from tidemark.status import BY_REASON
from tidemark.store.paths import StorePaths
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1 import topics_pb2

pytestmark = pytest.mark.integration

NAMES = st.sampled_from(
    ["t", "batches", "%RETRY%g", "%DLQ%g", "SCHEDULE_TOPIC_XXXX", "", "..", "a/b", "\0", "ü", "t" * 128]
)
TEXTS = st.sampled_from(["", "A", " ", "\x01", "\x02", "k 1", "\0", "é€😀", "x" * 33_000]) | st.text(max_size=8)
PROPERTY_NAMES = st.sampled_from(
    [
        "TAGS",
        "KEYS",
        "UNIQ_KEY",
        "DELAY",
        "TIMER_DELAY_SEC",
        "INNER_NUM",
        "INNER_BASE",
        "INNER_MULTI_DISPATCH",
        "INNER_MULTI_QUEUE_OFFSET",
        "__CRC32#",
        "REAL_TOPIC",
        "REAL_QID",
        "WAIT",
        "",
        "\x01",
    ]
) | st.text(max_size=4)
PROPERTIES = st.dictionaries(
    PROPERTY_NAMES, TEXTS | st.sampled_from(["0", "1", "18", "99", "-1", "9" * 20]), max_size=3
)
SMALL_I4 = st.integers(-2, 5) | I4
I8_OR_SMALL = st.integers(-2, 5) | I8
MESSAGES = st.lists(
    st.builds(
        pb.Message,
        body=st.binary(max_size=30) | st.just(b"x" * 5000),
        tag=TEXTS,
        keys=st.lists(TEXTS, max_size=2),
        properties=PROPERTIES,
        flag=I4,
    ),
    max_size=4,
)
PACKED = mutated(wire_batches().map(lambda elements: builders.wire_batch(*elements)))
FLAGS = st.sampled_from([0, 0, 0x1, 0x2, 0x4, 0xC, 0x10, 0x20, 0x40, 0x80, 0xC0, 0x300, 0x7FFFFFFF]) | I4


OPTIONAL = {
    "queue_id": SMALL_I4,
    "routing_key": TEXTS,
    "request_id": TEXTS,
    "expected_next_offset": I8_OR_SMALL,
    "properties": PROPERTIES,
    "born_timestamp_ms": I8_OR_SMALL,
    "sys_flag": FLAGS,
    "flag": I4,
    "reconsume_times": SMALL_I4,
}
PAYLOADS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    PACKED.map(lambda packed: {"packed": packed}),
    PACKED.map(lambda packed: {"packed": packed}),
    MESSAGES.map(lambda messages: {"messages": pb.MessageList(messages=messages)}),
)


@st.composite
def append_requests(draw: st.DrawFn) -> pb.AppendBatchRequest:
    """Draw a request of one batch."""
    given = draw(st.sets(st.sampled_from(sorted(OPTIONAL)), max_size=4))
    fields: dict[str, Any] = {name: draw(OPTIONAL[name]) for name in sorted(given)}
    return pb.AppendBatchRequest(topic=draw(NAMES), **fields, **draw(PAYLOADS))


ATTRIBUTES = st.dictionaries(
    st.sampled_from(
        ["+queue.type", "queue.type", "-queue.type", "+message.type", "+reserve.time", "+", "", "x", "+-x"]
    ),
    st.sampled_from(["BatchCQ", "SimpleCQ", "NORMAL", "-1", "9" * 30, "", "\0"]),
    max_size=2,
)
REQUESTS = st.one_of(
    append_requests().map(lambda one: ("tidemark.v1.CommitLogService/AppendBatch", one)),
    append_requests().map(lambda one: ("tidemark.v1.CommitLogService/AppendBatch", one)),
    st.builds(topics_pb2.CreateTopicRequest, name=NAMES, queue_count=SMALL_I4, attributes=ATTRIBUTES).map(
        lambda one: ("tidemark.v1.TopicService/CreateTopic", one)
    ),
    st.builds(
        topics_pb2.AlterTopicRequest,
        name=NAMES,
        read_queue_count=st.none() | SMALL_I4,
        write_queue_count=st.none() | SMALL_I4,
        permission=st.none() | SMALL_I4,
        attributes=ATTRIBUTES,
    ).map(lambda one: ("tidemark.v1.TopicService/AlterTopic", one)),
    st.builds(topics_pb2.DescribeTopicRequest, name=NAMES).map(
        lambda one: ("tidemark.v1.TopicService/DescribeTopic", one)
    ),
    st.builds(topics_pb2.DeleteTopicRequest, name=NAMES).map(lambda one: ("tidemark.v1.TopicService/DeleteTopic", one)),
    st.builds(topics_pb2.GetRouteRequest, name=NAMES).map(lambda one: ("tidemark.v1.TopicService/GetRoute", one)),
    st.just(("tidemark.v1.CommitLogService/GetLogInfo", pb.GetLogInfoRequest())),
)
READS = st.builds(pb.ReadLogRequest, physical_offset=I8_OR_SMALL, max_bytes=I8_OR_SMALL)
OF_GRPC = {  # gRPC's own responses, before Tidemark's code runs
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNIMPLEMENTED,
}


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWriter]:
    """Run a writer with small limits, so that they are reached; its log must be sound at the end."""
    root = tmp_path_factory.mktemp("hostile") / "store"
    with RunningWriter(root, max_message_size_bytes=4096, max_in_flight_bytes=1 << 16) as running:
        running.topics.CreateTopic(
            topics_pb2.CreateTopicRequest(name="batches", queue_count=2, attributes={"queue.type": "BatchCQ"}),
            timeout=30,
        )
        yield running
        assert running.append("alive", builders.wire_batch((b"still here", b"", 0))).message_count == 1
    assert running.failure is None
    paths = StorePaths(root)
    report = check_store(paths, whole_store(paths))
    assert report.findings == []
    assert report.records > 0


def require_named(error: grpc.RpcError) -> None:
    """Require a reason of the table that is no bug."""
    call: Any = error
    if call.code() in OF_GRPC and not call.trailing_metadata():
        return
    refusal = Refusal(error)
    assert refusal.reason in BY_REASON, refusal.reason
    assert refusal.domain == "tidemark"


def ask(writer: RunningWriter, method: str, request: bytes) -> None:
    """Call the method with these bytes; expect a response or a named refusal."""
    call = writer.channel.unary_unary(f"/{method}", lambda raw: raw, lambda raw: raw)
    try:
        call(request, timeout=20)
    except grpc.RpcError as error:
        require_named(error)


@fuzz(few=60, at_once=150, request=REQUESTS)
def test_every_grpc_answer_is_valid_or_a_named_error(writer: RunningWriter, request: tuple[str, ProtoMessage]) -> None:
    """Fields have any value."""
    method, message = request
    ask(writer, method, message.SerializeToString())


@fuzz(few=30, at_once=150, request=REQUESTS, data=st.data())
def test_bytes_that_are_not_a_message_get_a_named_error(
    writer: RunningWriter, request: tuple[str, ProtoMessage], data: st.DataObject
) -> None:
    """They are truncated, changed, or text that is not UTF-8."""
    method, message = request
    ask(writer, method, data.draw(mutated(st.just(message.SerializeToString())) | st.binary(max_size=40)))


@fuzz(few=20, at_once=100, batches=st.lists(append_requests(), max_size=4), junk=st.none() | st.binary(max_size=20))
def test_a_stream_answers_each_batch(
    writer: RunningWriter, batches: list[pb.AppendBatchRequest], junk: bytes | None
) -> None:
    """A refused batch has its own status and does not end the stream; bytes that are no message do."""
    entries = [pb.AppendStreamRequest.Entry(correlation_id=i, batch=batch) for i, batch in enumerate(batches)]
    sent = [pb.AppendStreamRequest(batches=[entry]).SerializeToString() for entry in entries]
    call = writer.channel.stream_stream(
        "/tidemark.v1.CommitLogService/AppendStream", lambda raw: raw, pb.AppendStreamResponse.FromString
    )
    answered = set()
    try:
        for response in call(iter(sent if junk is None else [*sent, junk]), timeout=20):
            for result in response.results:
                answered.add(result.correlation_id)
                if result.WhichOneof("outcome") == "error":
                    assert Refusal(result.error).reason in BY_REASON
    except grpc.RpcError as error:
        assert junk is not None
        require_named(error)
    else:
        assert answered >= set(range(len(batches)))


@fuzz(few=20, at_once=100, request=READS)
def test_reads_of_any_offset_are_answered(writer: RunningWriter, request: pb.ReadLogRequest) -> None:
    """The response has bytes of the log, or the reason for their absence."""
    try:
        for response in writer.log.ReadLog(request, timeout=20):
            assert response.physical_offset >= 0
    except grpc.RpcError as error:
        require_named(error)
