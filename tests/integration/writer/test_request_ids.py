"""Ids of calls."""

from __future__ import annotations

import re

import grpc
import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from tests.builders import wire_batch
from tidemark.client.errors.grpc_errors import error_of_rpc
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1 import topics_pb2

from .harness import Refusal, RunningWriter

pytestmark = pytest.mark.integration
BATCH = pb.AppendBatchRequest(topic="t", packed=wire_batch((b"body", b"", 0)))


def answered_id(call: grpc.Call) -> str:
    """Return the id in an answer's trailing metadata."""
    (found,) = [value for name, value in call.trailing_metadata() if name == "x-request-id"]
    return str(found)


def test_an_answer_has_the_id_of_its_call(writer: RunningWriter) -> None:
    """It is the caller's if it has given one, otherwise a unique one."""
    _, call = writer.log.AppendBatch.with_call(BATCH, metadata=(("x-request-id", "mine-1"),))
    assert answered_id(call) == "mine-1"
    made = {answered_id(writer.log.AppendBatch.with_call(BATCH)[1]) for _ in range(3)}
    assert len(made) == 3
    _, call = writer.log.AppendBatch.with_call(BATCH, metadata=(("x-request-id", "not {sane}"),))
    assert re.fullmatch(r"[0-9a-f]+-[0-9a-f]+", answered_id(call))


def test_a_stream_has_an_id(writer: RunningWriter) -> None:
    """All of its batches share it."""
    entry = pb.AppendStreamRequest.Entry(correlation_id=1, batch=BATCH)
    call = writer.log.AppendStream(iter([pb.AppendStreamRequest(batches=[entry])]), metadata=(("x-request-id", "s1"),))
    assert len(list(call)) == 1
    assert answered_id(call) == "s1"


def test_a_refusal_has_the_request_id(writer: RunningWriter) -> None:
    """Details, metadata and the client error's facts have it, so that a user can quote it."""
    with pytest.raises(grpc.RpcError) as refused:
        writer.log.AppendBatch(pb.AppendBatchRequest(topic="t"), metadata=(("x-request-id", "mine-2"),))
    assert Refusal(refused.value).request_id == "mine-2"
    assert answered_id(refused.value) == "mine-2"  # type: ignore[arg-type]
    assert error_of_rpc(refused.value).facts["request_id"] == "mine-2"


def test_a_failure_is_logged_with_the_request_id(writer: RunningWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event is `request_failed`; the failure is a bug."""
    monkeypatch.setattr(writer._server.parts.topic_service, "_topics", None)
    with capture_logs(processors=[merge_contextvars]) as logs, pytest.raises(grpc.RpcError) as failed:
        writer.topics.ListTopics(topics_pb2.ListTopicsRequest(), metadata=(("x-request-id", "mine-3"),))
    assert failed.value.code() is grpc.StatusCode.INTERNAL
    (event,) = [event for event in logs if event["event"] == "request_failed"]
    assert event["request_id"] == "mine-3"
