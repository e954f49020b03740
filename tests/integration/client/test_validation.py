"""Client and writer refuse the same messages for the same reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future

import grpc
import pytest

from tidemark.client import Message, Producer, SendResult
from tidemark.client.errors.grpc_errors import error_of_rpc
from tidemark.client.wire.channel import open_channel
from tidemark.errors import StoreError
from tidemark.format.primitives import MAX_MESSAGE_SIZE_BYTES as MAX
from tidemark.local.local_stack import LocalStack
from tidemark.status import status_of
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub

pytestmark = pytest.mark.integration

CASES: dict[str, tuple[str, list[Message]]] = {
    "no topic": ("TOPIC_ILLEGAL", [Message("", b"x")]),
    "a topic of other characters": ("TOPIC_ILLEGAL", [Message("no topic", b"x")]),
    "a dot in a topic": ("TOPIC_ILLEGAL", [Message("../t", b"x")]),
    "a long topic": ("TOPIC_ILLEGAL", [Message("t" * 128, b"x")]),
    "a topic of the broker's delays": ("TOPIC_FORBIDDEN", [Message("SCHEDULE_TOPIC_XXXX", b"x")]),
    "a topic of its transactions": ("TOPIC_FORBIDDEN", [Message("RMQ_SYS_TRANS_HALF_TOPIC", b"x")]),
    "another one of those": ("TOPIC_FORBIDDEN", [Message("RMQ_SYS_TRANS_OP_HALF_TOPIC", b"x")]),
    "a topic of its transactions' checks": ("TOPIC_FORBIDDEN", [Message("TRANS_CHECK_MAX_TIME_TOPIC", b"x")]),
    "its self test": ("TOPIC_FORBIDDEN", [Message("SELF_TEST_TOPIC", b"x")]),
    "its moved offsets": ("TOPIC_FORBIDDEN", [Message("OFFSET_MOVED_EVENT", b"x")]),
    "no body": ("BATCH_EMPTY", [Message("t", b"")]),
    "one body of several missing": ("BATCH_EMPTY", [Message("t", b"x"), Message("t", b"")]),
    "no messages": ("BATCH_EMPTY", []),
    "a body above the limit": ("MESSAGE_SIZE_EXCEEDED", [Message("t", bytes(MAX + 1))]),
    "a batch above the limit": ("MESSAGE_SIZE_EXCEEDED", [Message("t", bytes(MAX // 2))] * 2),
    "long properties": ("PROPERTIES_SIZE_EXCEEDED", [Message("t", b"x", properties={"a": "b" * 32_765})]),
    "a key with a space": ("PROPERTIES_ILLEGAL", [Message("t", b"x", keys=["two words"])]),
    "an empty key": ("PROPERTIES_ILLEGAL", [Message("t", b"x", keys=["a", ""])]),
    "a separator in a tag": ("PROPERTIES_ILLEGAL", [Message("t", b"x", tag="a\x01b")]),
    "a separator in a value": ("PROPERTIES_ILLEGAL", [Message("t", b"x", properties={"a": "b\x02"})]),
    "an empty value": ("PROPERTIES_ILLEGAL", [Message("t", b"x", properties={"a": ""})]),
    "an empty name": ("PROPERTIES_ILLEGAL", [Message("t", b"x", properties={"": "b"})]),
    "a tag given twice": ("PROPERTIES_ILLEGAL", [Message("t", b"x", tag="A", properties={"TAGS": "B"})]),
    "the store's CRC": ("PROPERTIES_ILLEGAL", [Message("t", b"x", properties={"__CRC32#": "1"})]),
    "a batch that says so itself": ("INNER_BATCH_ILLEGAL", [Message("t", b"x", properties={"INNER_NUM": "2"})]),
    "a delayed message of several": (
        "BATCH_DELAY",
        [Message("t", b"x"), Message("t", b"x", properties={"DELAY": "3"})],
    ),
    "a timer": ("BATCH_DELAY", [Message("t", b"x"), Message("t", b"x", properties={"TIMER_DELAY_MS": "3"})]),
    "a batch to a retry topic": ("BATCH_RETRY_TOPIC", [Message("%RETRY%g", b"x"), Message("%RETRY%g", b"x")]),
}


def reason_of(call: Callable[[], object]) -> str:
    with pytest.raises(StoreError) as raised:
        call()
    return status_of(raised.value).reason


@pytest.mark.parametrize("case", CASES)
def test_client_and_writer_refuse_for_the_same_reason(writer: LocalStack, producer: Producer, case: str) -> None:
    """The client refuses before a send; the writer refuses a request that bypasses the client."""
    reason, messages = CASES[case]
    producer._outbox.send = producer._outbox.send_batch = _must_not_send  # type: ignore[method-assign]
    assert reason_of(lambda: producer.send_batch(messages)) == reason
    if len(messages) == 1:
        assert reason_of(lambda: producer.send(messages[0])) == reason
        assert reason_of(lambda: producer.send_oneway(messages[0])) == reason
    assert reason_of(lambda: _ask(writer.writer_address, messages)) == reason


def _must_not_send(*_: object, **__: object) -> Future[SendResult]:
    raise AssertionError("the client sent a message that it must refuse")


def _ask(address: str, messages: Sequence[Message]) -> pb.AppendBatchResponse:
    """Return the writer's own response to the messages, sent as any program may send them."""
    request = pb.AppendBatchRequest(topic=messages[0].topic if messages else "t", queue_id=0)
    request.messages.messages.extend(
        pb.Message(
            body=bytes(message.body, "utf-8") if isinstance(message.body, str) else message.body,
            tag=message.tag or "",
            keys=message.keys,
            properties=message.properties,
        )
        for message in messages
    )
    with open_channel(address) as channel:
        try:
            answer: pb.AppendBatchResponse = CommitLogServiceStub(channel).AppendBatch(request, timeout=30)
        except grpc.RpcError as error:
            raise error_of_rpc(error) from error
        return answer
