"""A failing disk: failed syncs stop the writer, a full disk only refuses, and no acknowledgement is wrong."""

from __future__ import annotations

import errno
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from tests.builders import wire_batch
from tidemark.errors import DiskFullError, FlushFailedError, StoreLockedError
from tidemark.v1 import commit_log_pb2 as pb

from .faulty_storage import FaultyStorage, full, full_for_records
from .harness import RunningWriter, log_bytes, refusal_of, stored_records

pytestmark = pytest.mark.integration

ONE = wire_batch((b"x", b"", 0))


def batch(number: int, size: int = 1) -> bytes:
    return wire_batch((b"%d:" % number + bytes(size), b"", 0))


def test_failed_fdatasync_stops_the_writer(tmp_path: Path) -> None:
    """The append gets FLUSH_FAILED, later ones that or no connection, and the store is not marked clean."""
    storage = FaultyStorage()
    with RunningWriter(tmp_path, storage) as writer:
        end = writer.append("t", ONE).end_physical_offset
        storage.fail_fdatasync = True
        refusal = refusal_of(lambda: writer.append("t", ONE))
        assert (refusal.code.name, refusal.reason) == ("INTERNAL", "FLUSH_FAILED")
        with pytest.raises(grpc.RpcError) as later:
            writer.append("t", ONE)
        assert later.value.code().name in ("INTERNAL", "UNAVAILABLE", "CANCELLED")
        writer.wait_for_end()
        assert isinstance(writer.failure, FlushFailedError)
    assert not (tmp_path / "tidemark" / "writer" / "clean").exists()
    with RunningWriter(tmp_path) as writer:  # the written message may be there once; it was never acknowledged
        assert writer.info().recovered_end_offset in (end, 2 * end)


def test_failed_checkpoint_flush_stops_the_writer(tmp_path: Path) -> None:
    """A confirm offset that cannot be made durable is as bad as a failed fdatasync."""
    storage = FaultyStorage()
    with RunningWriter(tmp_path, storage) as writer:
        storage.fail_words_flush = True
        writer.append("t", ONE)  # synced itself, so it is answered
        writer.wait_for_end()
        assert isinstance(writer.failure, FlushFailedError)


@pytest.mark.parametrize("torn_bytes", [0, 3, 8, 150, 100_000], ids=lambda torn: f"torn after {torn}")
def test_full_disk_refuses_and_recovers(tmp_path: Path, torn_bytes: int) -> None:
    """DISK_FULL with RetryInfo, no trace of the failed write; the next append gets the same position."""
    storage = FaultyStorage()
    with RunningWriter(tmp_path, storage) as writer:
        first = writer.append("t", batch(1, 500))
        before = log_bytes(tmp_path)
        storage.torn_bytes = torn_bytes
        storage.fail_pwrite = full_for_records
        refusal = refusal_of(lambda: writer.append("t", batch(2, 500)))
        assert (refusal.code.name, refusal.reason) == ("RESOURCE_EXHAUSTED", "DISK_FULL")
        assert refusal.retry_after_ms is not None
        assert writer.info().max_physical_offset == first.end_physical_offset
        storage.fail_pwrite = lambda data: None
        assert log_bytes(tmp_path) == before or torn_bytes
        second = writer.append("t", batch(3, 500))
        assert (second.queue_offset, second.physical_offset) == (1, first.end_physical_offset)
        assert writer.failure is None
    assert [record.body[:2] for record in stored_records(tmp_path)] == [b"1:", b"3:"]


def test_bytes_of_a_failed_write_are_zeroed(tmp_path: Path) -> None:
    """Bytes of a refused batch never come back: they are zero before the refusal is answered."""
    storage = FaultyStorage()
    with RunningWriter(tmp_path, storage) as writer:
        writer.append("t", batch(1))
        before = log_bytes(tmp_path)

        def once(data: memoryview) -> DiskFullError | None:
            storage.fail_pwrite = lambda data: None
            return full(data)

        storage.torn_bytes, storage.fail_pwrite = 100_000, once
        refusal_of(lambda: writer.append("t", batch(2, 9_000)))
        assert log_bytes(tmp_path) == before


def test_bytes_that_cannot_be_zeroed_stop_the_writer(tmp_path: Path) -> None:
    """A torn write that cannot be zeroed could come back as a record: the writer stops."""
    storage = FaultyStorage()
    with RunningWriter(tmp_path, storage) as writer:
        writer.append("t", batch(1))
        storage.torn_bytes, storage.fail_pwrite = 300, full
        assert refusal_of(lambda: writer.append("t", batch(2, 9_000))).reason == "FLUSH_FAILED"
        writer.wait_for_end()
        assert isinstance(writer.failure, FlushFailedError)


def test_a_failed_write_is_refused_and_the_next_one_succeeds(tmp_path: Path) -> None:
    """EIO on a write gives an error, no trace, and uses no queue offset."""
    storage = FaultyStorage()
    with RunningWriter(tmp_path, storage) as writer:
        writer.append("t", batch(1))

        def once(data: memoryview) -> OSError | None:
            storage.fail_pwrite = lambda data: None
            return OSError(errno.EIO, "input/output error")

        storage.fail_pwrite = once
        refusal = refusal_of(lambda: writer.append("t", batch(2)))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "DISK_FAILED")
        assert writer.append("t", batch(3)).queue_offset == 1
    assert [record.body[:2] for record in stored_records(tmp_path)] == [b"1:", b"3:"]


def test_full_disk_at_a_roll_refuses_and_recovers(tmp_path: Path) -> None:
    """If the next file cannot be created, the batch is refused, a smaller one still fits, and later the log rolls."""
    storage = FaultyStorage()
    storage.fail_create = True
    big = wire_batch((bytes(400_000), b"", 0))
    with RunningWriter(tmp_path, storage) as writer:
        storage.fail_create = False
        writer.append("t", big)
        storage.fail_create = True
        writer.append("t", big)
        assert refusal_of(lambda: writer.append("t", big)).reason == "DISK_FULL"
        assert writer.append("t", ONE).queue_offset == 2
        storage.fail_create = False
        assert writer.append("t", big).physical_offset == 1 << 20
        assert writer.failure is None
    assert [record.queue_offset for record in stored_records(tmp_path)] == [0, 1, 2, 3]


def test_a_nearly_full_disk_refuses_appends(tmp_path: Path) -> None:
    """Below min_free_disk_bytes the error is DISK_FULL with both numbers, and nothing is written."""
    with RunningWriter(tmp_path, min_free_disk_bytes=1 << 60) as writer:
        refusal = refusal_of(lambda: writer.append("t", ONE))
        assert (refusal.code.name, refusal.reason) == ("RESOURCE_EXHAUSTED", "DISK_FULL")
        assert int(refusal.facts["min_free_bytes"]) == 1 << 60
        assert writer.info().max_physical_offset == 0


def test_slow_flush_is_answered_flush_disk_timeout(tmp_path: Path) -> None:
    """Offsets with FLUSH_DISK_TIMEOUT; not committed yet; a repetition waits for the flush and gets the same."""
    storage = FaultyStorage()
    with RunningWriter(tmp_path, storage, sync_flush_timeout_ms=1000) as writer:
        first = writer.append("t", ONE)
        storage.fdatasync_gate.clear()
        late = writer.append("t", ONE, request_id="r")
        assert late.status == pb.PUT_STATUS_FLUSH_DISK_TIMEOUT
        assert (late.queue_offset, late.physical_offset) == (1, first.end_physical_offset)
        assert writer.info().committed_offset == first.end_physical_offset
        with ThreadPoolExecutor(1) as pool:
            repeat = pool.submit(lambda: writer.append("t", ONE, request_id="r"))
            time.sleep(0.02)
            storage.fdatasync_gate.set()
            answer = repeat.result(10)
        assert answer.duplicate
        assert answer.queue_offset == 1
        assert writer.info().committed_offset == late.end_physical_offset


def test_async_mode_answers_before_the_flush(tmp_path: Path) -> None:
    """A batch is answered and committed after the write, and flushed at the interval."""
    storage = FaultyStorage()
    with RunningWriter(tmp_path, storage, flush_mode="async", flush_interval_ms=50) as writer:
        writer.append("t", ONE)
        storage.fdatasync_gate.clear()
        end = [writer.append("t", ONE).end_physical_offset for _ in range(3)][-1]
        info = writer.info()
        assert (info.committed_offset, info.flush_mode) == (end, pb.FLUSH_MODE_ASYNC)
        assert info.flushed_offset < end
        storage.fdatasync_gate.set()
        deadline = time.monotonic() + 10
        while writer.info().flushed_offset < end:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_second_writer_in_the_same_process_is_refused(writer: RunningWriter) -> None:
    """One writer at a time opens the store's directory."""
    with pytest.raises(StoreLockedError), RunningWriter(writer.root):
        pass
