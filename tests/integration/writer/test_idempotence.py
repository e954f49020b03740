"""A repeated batch is stored once and answered with the original's offsets, also after a restart."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import make_plan
from services.writer.admission import admission
from tests.builders import properties, wire_batch
from tests.pipeline_runs import build
from tidemark.format.wire_batch import add_unique_keys
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1 import topics_pb2

from .harness import RunningWriter, refusal_of, stored_records

pytestmark = pytest.mark.integration

PLAIN = wire_batch((b"one", b"", 0), (b"two", b"a\x011\x02", 5))
KEYED = wire_batch(*[(b"body %d" % i, properties({"UNIQ_KEY": f"key-{i}", "KEYS": "k"}), i) for i in range(3)])
KEYED_LAST = wire_batch((b"one", b"", 0), (b"two", properties({"UNIQ_KEY": "own"}), 0), (b"three", b"", 0))
OTHER = wire_batch((b"one", b"", 0), (b"TWO", b"a\x011\x02", 5))


def without_flag(answer: pb.AppendBatchResponse) -> pb.AppendBatchResponse:
    copy = pb.AppendBatchResponse()
    copy.CopyFrom(answer)
    copy.duplicate, copy.term = False, 0
    return copy


@pytest.fixture(params=["simple", "batch"])
def topic(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def index_all(root: Path) -> None:
    build(make_plan(PipelineSettings(store_root=root, once=True, index_slots=10)))


def create(writer: RunningWriter, topic: str) -> None:
    attributes = {"queue.type": "BatchCQ"} if topic == "batch" else {}
    writer.topics.CreateTopic(topics_pb2.CreateTopicRequest(name=topic, attributes=attributes))


@pytest.mark.parametrize(("wire", "request_id"), [(PLAIN, "r1"), (KEYED, "")], ids=["request_id", "UNIQ_KEY"])
def test_repeat_gets_the_original_offsets(writer: RunningWriter, topic: str, wire: bytes, request_id: str) -> None:
    """Key, count and content are the same: the first answer again, with duplicate set, and nothing stored."""
    create(writer, topic)
    first = writer.append(topic, wire, request_id=request_id)
    writer.append(topic, wire_batch((b"between", b"", 0)))
    repeat = writer.append(topic, wire, request_id=request_id, queue_id=2)
    assert (first.duplicate, repeat.duplicate) == (False, True)
    assert without_flag(repeat) == without_flag(first)
    assert writer.info().max_physical_offset > first.end_physical_offset
    bodies = [record.body for record in stored_records(writer.root)]
    assert len(bodies) == len(set(bodies))


@pytest.mark.parametrize(("wire", "request_id"), [(PLAIN, "r1"), (KEYED, "")], ids=["request_id", "UNIQ_KEY"])
def test_repeat_after_a_restart_gets_the_original_offsets(
    tmp_path: Path, topic: str, wire: bytes, request_id: str
) -> None:
    """The window is rebuilt from the log's tail, for both forms of a batch."""
    with RunningWriter(tmp_path) as writer:
        create(writer, topic)
        writer.append(topic, wire_batch((b"before", b"", 0)))
        first = writer.append(topic, wire, request_id=request_id)
        writer.append(topic, wire_batch((b"after", b"", 0)))
    with RunningWriter(tmp_path) as writer:
        repeat = writer.append(topic, wire, request_id=request_id)
        assert repeat.duplicate
        assert without_flag(repeat) == without_flag(first)
        assert repeat.term == 2


def test_a_known_request_id_with_other_content_is_a_conflict(writer: RunningWriter, topic: str) -> None:
    """Another body, or fewer or more messages, with a known id: ALREADY_EXISTS, and nothing is stored."""
    create(writer, topic)
    first = writer.append(topic, PLAIN, request_id="r1")
    for other in (OTHER, wire_batch((b"one", b"", 0)), PLAIN + wire_batch((b"x", b"", 0))):
        refusal = refusal_of(lambda other=other: writer.append(topic, other, request_id="r1"))
        assert (refusal.code.name, refusal.reason) == ("ALREADY_EXISTS", "REQUEST_ID_CONFLICT")
    assert writer.info().max_physical_offset == first.end_physical_offset


def test_a_known_request_id_with_other_content_is_a_conflict_after_a_restart(tmp_path: Path, topic: str) -> None:
    """The rebuilt window detects other content as well."""
    with RunningWriter(tmp_path) as writer:
        create(writer, topic)
        writer.append(topic, PLAIN, request_id="r1")
    with RunningWriter(tmp_path) as writer:
        refusal = refusal_of(lambda: writer.append(topic, OTHER, request_id="r1"))
    assert refusal.reason == "REQUEST_ID_CONFLICT"


def test_same_id_on_another_topic_is_another_batch(writer: RunningWriter) -> None:
    """Ids belong to a topic."""
    writer.append("a", PLAIN, request_id="r1")
    assert not writer.append("b", PLAIN, request_id="r1").duplicate


def test_same_id_on_another_topic_is_another_batch_after_a_restart(tmp_path: Path) -> None:
    """A record of the same key in another topic is no duplicate."""
    with RunningWriter(tmp_path) as writer:
        writer.append("a", PLAIN, request_id="r1")
    with RunningWriter(tmp_path) as writer:
        assert not writer.append("b", PLAIN, request_id="r1").duplicate
        assert writer.append("a", PLAIN, request_id="r1").duplicate


@pytest.mark.parametrize("wire", [PLAIN, KEYED_LAST], ids=["no key", "a later message has one"])
def test_a_batch_stored_by_an_earlier_version_is_recognised(
    tmp_path: Path, topic: str, wire: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions gave only the first message a key; the repetition may come from a client that makes all."""
    with monkeypatch.context() as earlier, RunningWriter(tmp_path) as writer:
        earlier.setattr(admission, "_needs_unique_keys", lambda facts, is_batch: False)
        create(writer, topic)
        first = writer.append(topic, wire, request_id="r1")
    keyed = add_unique_keys(np.frombuffer(wire, np.uint8), first.message_count, b"r1").tobytes()
    with RunningWriter(tmp_path) as writer:
        for repeated in (wire, keyed):
            repeat = writer.append(topic, repeated, request_id="r1")
            assert repeat.duplicate
            assert without_flag(repeat) == without_flag(first)
        assert refusal_of(lambda: writer.append(topic, OTHER, request_id="r1")).reason == "REQUEST_ID_CONFLICT"


def test_concurrent_repeats_agree(writer: RunningWriter) -> None:
    """Many senders send one batch concurrently: it is stored once, and all get its offsets."""
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: writer.append("t", PLAIN, request_id="r1"), range(48)))
    assert [answer.duplicate for answer in answers].count(False) == 1
    assert {without_flag(answer).SerializeToString() for answer in answers} == {
        without_flag(answers[0]).SerializeToString()
    }
    assert len(stored_records(writer.root)) == 2


def test_a_repeated_compare_and_append_is_a_duplicate_and_not_a_mismatch(writer: RunningWriter) -> None:
    """A compare-and-append whose answer was lost succeeds when it is repeated."""
    first = writer.append("t", PLAIN, request_id="r1", expected_next_offset=0)
    assert writer.append("t", PLAIN, request_id="r1", expected_next_offset=0).duplicate
    assert first.queue_offset == 0


def test_the_window_drops_the_oldest_batch(tmp_path: Path) -> None:
    """With a window of two batches a third makes the first one new again; GetLogInfo has the size."""
    with RunningWriter(tmp_path, idempotence_window_batches=2) as writer:
        assert writer.info().idempotence_window_batches == 2
        for number in range(3):
            writer.append("t", PLAIN, request_id=f"r{number}")
        assert writer.append("t", PLAIN, request_id="r2").duplicate
        assert not writer.append("t", PLAIN, request_id="r0").duplicate


def recreate(writer: RunningWriter, topic: str) -> None:
    writer.topics.DeleteTopic(topics_pb2.DeleteTopicRequest(name=topic))
    create(writer, topic)


@pytest.mark.parametrize(("wire", "request_id"), [(PLAIN, "r1"), (KEYED, "")], ids=["request_id", "UNIQ_KEY"])
@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_a_batch_of_a_deleted_topic_is_not_an_original(
    tmp_path: Path, topic: str, wire: bytes, request_id: str, restart: bool
) -> None:
    """After the topic was deleted and created again the batch is stored again, and is then an original itself."""
    with RunningWriter(tmp_path) as writer:
        create(writer, topic)
        first = writer.append(topic, wire, request_id=request_id)
        recreate(writer, topic)
        if not restart:
            check_stored_anew(writer, topic, wire, request_id, first)
    if restart:
        with RunningWriter(tmp_path) as writer:
            check_stored_anew(writer, topic, wire, request_id, first)


def check_stored_anew(
    writer: RunningWriter, topic: str, wire: bytes, request_id: str, first: pb.AppendBatchResponse
) -> None:
    again = writer.append(topic, wire, request_id=request_id)
    assert (again.duplicate, again.queue_offset) == (False, first.queue_offset + first.message_count)
    repeat = writer.append(topic, wire, request_id=request_id)
    assert repeat.duplicate
    assert without_flag(repeat) == without_flag(again)


def test_other_content_under_the_id_of_a_deleted_topic_is_not_a_conflict(writer: RunningWriter, topic: str) -> None:
    """The id belongs to the present topic."""
    create(writer, topic)
    writer.append(topic, PLAIN, request_id="r1")
    recreate(writer, topic)
    assert not writer.append(topic, OTHER, request_id="r1").duplicate
    assert refusal_of(lambda: writer.append(topic, PLAIN, request_id="r1")).reason == "REQUEST_ID_CONFLICT"


def test_compare_and_append_of_a_deleted_topic_compares_again(writer: RunningWriter, topic: str) -> None:
    """Numbering continues in the new topic, so the old expectation is a mismatch and the new one is met."""
    create(writer, topic)
    writer.append(topic, PLAIN, request_id="r1", expected_next_offset=0)
    recreate(writer, topic)
    refusal = refusal_of(lambda: writer.append(topic, PLAIN, request_id="r1", expected_next_offset=0))
    assert (refusal.reason, refusal.facts["actual"]) == ("NEXT_OFFSET_MISMATCH", "2")
    assert not writer.append(topic, PLAIN, request_id="r1", expected_next_offset=2).duplicate


def test_a_batch_of_an_expired_file_is_not_an_original(tmp_path: Path) -> None:
    """A duplicate is recognised only while its original can be read."""
    with RunningWriter(tmp_path, retention_interval_ms=20, retention_hours=1e-6) as writer:
        writer.append("t", PLAIN, request_id="r1")
        index_all(tmp_path)
        filler = wire_batch((b"x" * 400_000, b"", 0))
        for _ in range(8):
            writer.append("other", filler)
        index_all(tmp_path)
        deadline = time.monotonic() + 30
        while writer.info().min_physical_offset == 0:
            assert time.monotonic() < deadline, "no file expired"
            time.sleep(0.02)
        assert not writer.append("t", PLAIN, request_id="r1").duplicate
        assert not writer.append("t", PLAIN, request_id="r2").duplicate
