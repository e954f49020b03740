"""The running writer deletes old log files, and nothing else is affected."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.writer.log.queue_offsets import load_snapshot
from tests.builders import wire_batch, write_log
from tests.marked import mark_durable
from tests.open_files import open_files
from tests.waiting import until
from tidemark.errors import DiskFullError, FlushFailedError
from tidemark.store.storage import DiskStorage
from tidemark.v1 import commit_log_pb2 as pb

from .harness import RunningWriter, log_bytes, refusal_of, stored_records

pytestmark = pytest.mark.integration

SIZE = 1 << 16
SHORT: dict[str, Any] = {"commit_log_segment_size_bytes": SIZE, "retention_hours": 1e-6, "retention_interval_ms": 10}
YEAR_HOURS = 24 * 365


class GatedStorage(DiskStorage):
    """Log files are deleted only while the gate is open; *refuse* is raised instead."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.asked = threading.Event()
        self.refuse: Exception | None = None
        self.snapshots_fail = False

    def unlink(self, path: Path) -> None:
        if path.parent.name == "commitlog":
            self.asked.set()
            self.gate.wait()
            if self.refuse is not None:
                raise self.refuse
        super().unlink(path)

    def create(self, path: Path, size: int) -> int:
        if self.snapshots_fail and path.name.startswith("queue_offsets"):
            raise DiskFullError("injected")
        return super().create(path, size)


def fill(writer: RunningWriter, count: int = 12, topic: str = "t") -> list[pb.AppendBatchResponse]:
    """Append batches of one message of 20 KB: three fit into a file."""
    return [writer.append(topic, request_id=f"{topic}-{i}", packed=_wire(i)) for i in range(count)]


def _wire(number: int) -> bytes:
    return wire_batch((b"%d:" % number + bytes(20_000), b"", 0))


def min_offset(writer: RunningWriter) -> int:
    return int(writer.info().min_physical_offset)


@pytest.fixture
def storage() -> GatedStorage:
    return GatedStorage()


@pytest.fixture
def writer(tmp_path: Path, storage: GatedStorage) -> Iterator[RunningWriter]:
    with RunningWriter(tmp_path / "store", storage, **SHORT) as running:
        yield running


def test_old_indexed_files_are_deleted_and_the_log_continues(writer: RunningWriter) -> None:
    """Whole files below the minimum durable mark are deleted, not the mark's file; appends and reads continue."""
    answers = fill(writer)
    end = answers[-1].end_physical_offset
    before = log_bytes(writer.root)
    mark_durable(writer.root, 2 * SIZE + 1)
    until(lambda: min_offset(writer) == 2 * SIZE)
    assert min(log_bytes(writer.root)) == 2 * SIZE
    until(lambda: "tidemark_retention_deleted_files_total 2.0" in writer.metrics())
    assert "tidemark_retention_deleted_bytes_total 0.0" not in writer.metrics()
    reading = writer.log.ReadLog(pb.ReadLogRequest(physical_offset=2 * SIZE), timeout=20)
    read = b"".join(part.data for part in reading)
    assert read == b"".join(before[start] for start in sorted(before) if start >= 2 * SIZE)[: end - 2 * SIZE]
    refusal = refusal_of(lambda: list(writer.log.ReadLog(pb.ReadLogRequest(physical_offset=2 * SIZE - 1), timeout=20)))
    assert (refusal.code.name, refusal.reason) == ("OUT_OF_RANGE", "OFFSET_TOO_SMALL")
    assert refusal.facts == {"min_offset": str(2 * SIZE), "max_offset": str(end)}
    assert fill(writer, 1, "u")[0].queue_offset == 0
    assert writer.append("t", _wire(99)).queue_offset == len(answers)


def test_a_clock_set_ahead_deletes_nothing_during_the_grace_period(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every record is a day old at once; after the clock is set back nothing is lost.

    If the jump lasts, it is accepted.
    """
    settings = {**SHORT, "retention_hours": 12, "retention_clock_grace_ms": 1_000}
    with RunningWriter(tmp_path, **settings) as writer:
        mark_durable(writer.root, fill(writer)[-1].end_physical_offset)
        real = time.time_ns
        set_ahead_at = time.monotonic()
        monkeypatch.setattr(time, "time_ns", lambda: real() + 24 * 3_600 * 10**9)
        time.sleep(0.5)
        assert min_offset(writer) == 0
        until(lambda: min_offset(writer) > 0)
        assert time.monotonic() - set_ahead_at >= 1


def test_the_file_of_the_logs_end_is_kept(writer: RunningWriter) -> None:
    """It may be old and fully indexed."""
    end = fill(writer)[-1].end_physical_offset
    mark_durable(writer.root, end)
    until(lambda: min_offset(writer) == end - end % SIZE)
    time.sleep(0.2)
    assert min_offset(writer) == end - end % SIZE
    assert stored_records(writer.root)[-1].queue_offset == 11


def test_a_batch_of_a_file_that_is_being_deleted_is_stored_again(writer: RunningWriter, storage: GatedStorage) -> None:
    """Its answer would name an offset that readers are refused."""
    (first, *_, last) = fill(writer)
    storage.gate.clear()
    mark_durable(writer.root, last.end_physical_offset)
    assert storage.asked.wait(20)
    assert min_offset(writer) > first.physical_offset
    (again,) = fill(writer, 1)
    storage.gate.set()
    assert (again.duplicate, again.queue_offset) == (False, last.queue_offset + 1)


@pytest.mark.parametrize("term", [None, 0])
def test_files_not_indexed_in_this_term_are_kept(writer: RunningWriter, term: int | None) -> None:
    """There are no marks, or those of an older term, which may cover truncated data."""
    end = fill(writer)[-1].end_physical_offset
    if term is not None:
        mark_durable(writer.root, end, term=term)
    time.sleep(0.3)
    assert min_offset(writer) == 0
    mark_durable(writer.root, end)
    until(lambda: min_offset(writer) > 0)


def test_retention_is_off_by_default(tmp_path: Path) -> None:
    """This holds for a directory whose records are years old."""
    write_log(tmp_path / "commitlog", SIZE, ({"body": bytes(20_000), "queue_offset": i} for i in range(9)))
    with RunningWriter(tmp_path, commit_log_segment_size_bytes=SIZE, retention_interval_ms=10) as writer:
        mark_durable(tmp_path, writer.info().committed_offset)
        time.sleep(0.3)
        assert min_offset(writer) == 0


@pytest.mark.parametrize("is_old", [True, False])
def test_the_age_is_that_of_the_records_and_not_of_the_file(tmp_path: Path, is_old: bool) -> None:
    """A restored store has new file times on old records; a copy that keeps its times has old ones on new records."""
    now_ms = time.time_ns() // 1_000_000
    store_ms = now_ms - 2 * YEAR_HOURS * 3_600_000 if is_old else now_ms
    fields = ({"body": bytes(20_000), "queue_offset": i, "store_timestamp": store_ms} for i in range(9))
    write_log(tmp_path / "commitlog", SIZE, fields)
    for path in (tmp_path / "commitlog").iterdir():
        os.utime(path, None if is_old else (1, 1))
    settings = {**SHORT, "retention_hours": YEAR_HOURS}
    with RunningWriter(tmp_path, **settings) as writer:
        mark_durable(tmp_path, writer.info().committed_offset)
        if is_old:
            until(lambda: min_offset(writer) == 2 * SIZE)
        else:
            time.sleep(0.3)
            assert min_offset(writer) == 0


def test_a_repeat_of_an_expired_batch_is_new(writer: RunningWriter) -> None:
    """The window still has its key, but the place is gone; a repetition whose original exists gets that answer."""
    answers = fill(writer)
    mark_durable(writer.root, 2 * SIZE + 1)
    until(lambda: min_offset(writer) == 2 * SIZE)
    gone, kept = answers[0], answers[11]
    assert gone.physical_offset < 2 * SIZE <= kept.physical_offset
    repeat = writer.append("t", _wire(11), request_id="t-11")
    assert (repeat.duplicate, repeat.queue_offset) == (True, kept.queue_offset)
    again = writer.append("t", _wire(0), request_id="t-0")
    assert (again.duplicate, again.queue_offset) == (False, 12)


def test_a_repeat_of_a_batch_expired_before_a_restart_is_new(writer: RunningWriter, tmp_path: Path) -> None:
    """The window that is rebuilt from the log's tail begins at its minimum."""
    fill(writer)
    mark_durable(writer.root, 2 * SIZE + 1)
    until(lambda: min_offset(writer) == 2 * SIZE)
    writer.stop()
    with RunningWriter(tmp_path / "store", **SHORT) as again:
        assert again.append("t", _wire(11), request_id="t-11").duplicate
        assert again.append("t", _wire(0), request_id="t-0").queue_offset == 12


def test_appends_continue_while_a_file_is_deleted(writer: RunningWriter, storage: GatedStorage) -> None:
    """The deletion of a large file takes a disk some time."""
    end = fill(writer)[-1].end_physical_offset
    storage.gate.clear()
    mark_durable(writer.root, end)
    assert storage.asked.wait(60)
    try:
        assert [answer.queue_offset for answer in fill(writer, 12, "u")] == list(range(12))
        assert min_offset(writer) == SIZE
    finally:
        storage.gate.set()
    until(lambda: min_offset(writer) == end - end % SIZE)


def test_files_are_kept_until_their_queue_offsets_are_saved(tmp_path: Path, storage: GatedStorage) -> None:
    """The offsets could not be recovered from the log. Once they can be saved again, retention continues."""
    storage.snapshots_fail = True
    with RunningWriter(tmp_path, storage, **SHORT) as writer:
        end = fill(writer)[-1].end_physical_offset
        mark_durable(tmp_path, end)
        time.sleep(0.3)
        assert min_offset(writer) == 0
        storage.snapshots_fail = False
        until(lambda: min_offset(writer) == end - end % SIZE)
        snapshot = load_snapshot(tmp_path / "tidemark" / "writer" / "queue_offsets")
        assert snapshot is not None
        assert snapshot.position >= min_offset(writer)


def test_a_file_that_cannot_be_deleted_is_kept_and_retried(writer: RunningWriter, storage: GatedStorage) -> None:
    """Readers still have it, and the writer continues."""
    end = fill(writer)[-1].end_physical_offset
    storage.refuse = OSError(30, "Read-only file system")
    mark_durable(writer.root, end)
    assert storage.asked.wait(60)
    until(lambda: min_offset(writer) == 0)
    assert next(iter(writer.log.ReadLog(pb.ReadLogRequest(physical_offset=0), timeout=20))).data
    storage.refuse = None
    until(lambda: min_offset(writer) == end - end % SIZE)


def test_a_failed_sync_of_the_folder_ends_the_writer(writer: RunningWriter, storage: GatedStorage) -> None:
    """It is treated like any other failed sync."""
    end = fill(writer)[-1].end_physical_offset
    storage.refuse = FlushFailedError("injected")
    mark_durable(writer.root, end)
    writer.wait_for_end()
    assert isinstance(writer.failure, FlushFailedError)


def test_the_log_reader_releases_a_deleted_file(writer: RunningWriter) -> None:
    """An idle ReadLog must not keep its disk space occupied."""
    end = fill(writer)[-1].end_physical_offset
    list(writer.log.ReadLog(pb.ReadLogRequest(physical_offset=0), timeout=20))

    def held() -> list[str]:
        return [path for path in open_files(writer.root) if path.endswith("(deleted)")]

    mark_durable(writer.root, end)
    until(lambda: min_offset(writer) == end - end % SIZE)
    until(lambda: held() == [])
