"""SIGKILL of a writer that delivers delayed messages: each is delivered, in order, and once within the window."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import make_plan
from tests.builders import properties, wire_batch
from tests.integration.writer.harness import stored_records
from tests.pipeline_runs import build
from tidemark.format.properties import decode_properties
from tidemark.format.record import Record
from tidemark.v1 import commit_log_pb2 as pb

from .process import WriterProcess

pytestmark = pytest.mark.crash

StartWriter = Callable[..., WriterProcess]
NEVER_MS = 3_600_000


def index(root: Path) -> None:
    build(make_plan(PipelineSettings(store_root=root, once=True, index_slots=10)))


def delivered(root: Path) -> list[Record]:
    return [record for record in stored_records(root) if record.topic == b"t"]


def delay(writer: WriterProcess, numbers: range, *, level: int = 1) -> None:
    """Send messages with that delay, to the four queues in turn."""
    for number in numbers:
        wire = wire_batch((b"%d" % number, properties({"DELAY": str(level)}), 0))
        request = pb.AppendBatchRequest(topic="t", queue_id=number % 4, packed=wire)
        assert writer.log.AppendBatch(request, timeout=10).deliver_timestamp_ms


def wait_for(root: Path, count: int) -> None:
    deadline = time.monotonic() + 30
    while len(delivered(root)) < count:
        assert time.monotonic() < deadline, "the messages were not delivered"
        time.sleep(0.02)


def check(root: Path, count: int) -> None:
    """Check that all are there, each once, in the order of the level."""
    records = delivered(root)
    assert [int(record.body) for record in records] == list(range(count))
    for record in records:
        assert decode_properties(record.properties)["REAL_QID"] == str(record.queue_id)
    for queue_id in range(4):
        offsets = [record.queue_offset for record in records if record.queue_id == queue_id]
        assert offsets == list(range(len(offsets)))


def test_a_kill_between_delivery_and_saved_offset_delivers_once(start_writer: StartWriter, tmp_path: Path) -> None:
    """All were delivered, and no offset was saved: the next run finds each of them in the log."""
    root = tmp_path / "store"
    writer = start_writer(DELAY_OFFSET_INTERVAL_MS=NEVER_MS)
    delay(writer, range(20))
    index(root)
    wait_for(root, 20)
    writer.kill()
    assert not (root / "config" / "delayOffset.json").exists()
    writer = start_writer()
    delay(writer, range(20, 21))
    index(root)
    wait_for(root, 21)
    assert writer.terminate() == 0
    check(root, 21)
    assert writer.event("scheduler_stopped")["repeated"] == 20
    assert (root / "config" / "delayOffset.json").exists()


def test_a_kill_during_delivery_loses_and_duplicates_nothing(start_writer: StartWriter, tmp_path: Path) -> None:
    """The writer is killed repeatedly at any step; the file of offsets is saved continually, or never."""
    root, count = tmp_path / "store", 300
    writer = start_writer(DELAY_OFFSET_INTERVAL_MS=10)
    delay(writer, range(count))
    index(root)
    for number, goal in enumerate((1, 40, 150)):
        wait_for(root, goal)
        writer.kill()
        index(root)
        writer = start_writer(DELAY_OFFSET_INTERVAL_MS=NEVER_MS if number % 2 else 10)
        index(root)
    wait_for(root, count)
    assert writer.terminate() == 0
    check(root, count)


def test_a_kill_before_any_message_is_due_delivers_later(start_writer: StartWriter, tmp_path: Path) -> None:
    """The messages are neither indexed nor due at the kill; none is delivered before its time."""
    root = tmp_path / "store"
    writer = start_writer()
    delay(writer, range(4))
    writer.kill()
    start_writer()
    index(root)
    wait_for(root, 4)
    check(root, 4)
    stored = {record.body: record for record in stored_records(root) if record.topic != b"t"}
    for record in delivered(root):
        assert record.store_timestamp >= stored[record.body].store_timestamp + 1_000
