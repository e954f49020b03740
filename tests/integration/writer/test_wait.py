"""WAIT=false: in flush mode `sync` such a message is answered after the write, as by RocketMQ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import properties, wire_batch
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1 import topics_pb2

from .faulty_storage import FaultyStorage
from .harness import RunningWriter, refusal_of, stored_records

pytestmark = pytest.mark.integration

OK = pb.PUT_STATUS_PUT_OK


def wire(*waits: str | None) -> bytes:
    """Return a batch with one message for each value of WAIT; None: without it."""
    return wire_batch(*[(b"x", b"" if wait is None else properties({"WAIT": wait}), 0) for wait in waits])


@pytest.fixture
def storage() -> FaultyStorage:
    """Return a disk whose fdatasync a test can block."""
    return FaultyStorage()


@pytest.fixture
def writer(tmp_path: Path, storage: FaultyStorage) -> Iterator[RunningWriter]:
    """Run a writer in flush mode `sync` with a topic of single messages, `s`, and one of inner batches, `b`."""
    with RunningWriter(tmp_path, storage, sync_flush_timeout_ms=600_000) as running:
        running.topics.CreateTopic(topics_pb2.CreateTopicRequest(name="s"))
        running.topics.CreateTopic(topics_pb2.CreateTopicRequest(name="b", attributes={"queue.type": "BatchCQ"}))
        try:
            yield running
        finally:
            storage.fdatasync_gate.set()


@pytest.mark.parametrize("topic", ["s", "b"])
@pytest.mark.parametrize(
    ("packed", "on_request"),
    [
        (wire("false"), {}),
        (wire("false", "False", "no"), {}),
        (wire(None), {"WAIT": "false"}),
        (wire(None, "false"), {"WAIT": "false"}),
    ],
    ids=["single", "batch", "request", "request and message"],
)
def test_a_message_with_wait_false_is_answered_before_the_flush(
    writer: RunningWriter, storage: FaultyStorage, topic: str, packed: bytes, on_request: dict[str, str]
) -> None:
    """This includes a duplicate. Nothing is committed before the flush, which follows by itself."""
    storage.fdatasync_gate.clear()
    before = writer.info().committed_offset
    answers = [writer.append(topic, packed, request_id="r", properties=on_request) for _ in range(2)]
    assert [(answer.status, answer.duplicate) for answer in answers] == [(OK, False), (OK, True)]
    assert writer.info().committed_offset == before
    storage.fdatasync_gate.set()
    assert writer.append(topic, wire("true")).status == OK
    assert writer.info().committed_offset > answers[0].end_physical_offset


@pytest.mark.parametrize("topic", ["s", "b"])
@pytest.mark.parametrize(
    ("packed", "on_request"),
    [(wire(None), {}), (wire("true"), {}), (wire("TRUE"), {}), (wire("true"), {"WAIT": "false"})],
    ids=["without", "true", "upper case", "message before request"],
)
def test_messages_without_wait_false_wait_for_the_flush(
    writer: RunningWriter, storage: FaultyStorage, topic: str, packed: bytes, on_request: dict[str, str]
) -> None:
    """This includes a message after one that does not wait."""
    storage.fdatasync_gate.clear()
    writer.append(topic, wire("false"))
    request = pb.AppendBatchRequest(topic=topic, packed=packed, properties=on_request)
    pending = writer.log.AppendBatch.future(request, timeout=60)
    for _ in range(3):  # the writer has received it long before it has answered these
        writer.append(topic, wire("false"))
    assert not pending.done()
    storage.fdatasync_gate.set()
    assert pending.result().status == OK


@pytest.mark.parametrize("topic", ["s", "b"])
@pytest.mark.parametrize(
    ("packed", "on_request"),
    [(wire("true", "false"), {}), (wire(None, "false"), {}), (wire("true", None), {"WAIT": "false"})],
    ids=["both", "without", "request"],
)
def test_a_batch_with_different_wait_values_is_refused(
    writer: RunningWriter, topic: str, packed: bytes, on_request: dict[str, str]
) -> None:
    """One answer cannot be right for all of them."""
    refused = refusal_of(lambda: writer.append(topic, packed, properties=on_request))
    assert (refused.reason, refused.facts["argument"]) == ("ARGUMENT_ILLEGAL", "WAIT")
    assert stored_records(writer.root) == []


def test_a_failed_flush_fails_the_waiting_appends(tmp_path: Path) -> None:
    """A message that does not wait is acknowledged before the failure, and may be lost."""
    storage = FaultyStorage()
    with RunningWriter(tmp_path, storage) as writer:
        writer.append("t", wire("true"))  # creates the topic
        storage.fail_fdatasync = True
        assert writer.append("t", wire("false")).status == OK
        writer.wait_for_end()
    assert writer.failure is not None
