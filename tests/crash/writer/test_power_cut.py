"""Power cuts with a writer in flush mode `async`: unsynced data is a torn tail, whatever the checkpoint contains."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import wire_batch
from tests.integration.writer.harness import stored_places
from tidemark.store.flushed import read_floor_of_async
from tidemark.store.originals.checked_copy import write_checked
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage
from tidemark.v1 import commit_log_pb2 as pb

from .process import SEGMENT_SIZE, WriterProcess

pytestmark = pytest.mark.crash

StartWriter = Callable[..., WriterProcess]


def append(writer: WriterProcess, body: bytes) -> pb.AppendBatchResponse:
    """Append one batch of two messages to queue 0."""
    wire = wire_batch((body, b"", 0), (body, b"", 0))
    answer: pb.AppendBatchResponse = writer.log.AppendBatch(
        pb.AppendBatchRequest(topic="t", queue_id=0, packed=wire), timeout=30
    )
    return answer


def run_and_kill(start_writer: StartWriter, paths: StorePaths, flush_mode: str) -> tuple[int, int]:
    """Append data that is synced, then data that is not in `async` mode; kill. Return both ends."""
    writer = start_writer(FLUSH_MODE=flush_mode, FLUSH_INTERVAL_MS=60_000)
    # the first group is synced at once; the flusher then waits
    flushed = append(writer, b"kept" * 500).end_physical_offset
    deadline = time.monotonic() + 60
    while flush_mode == "async" and read_floor_of_async(paths.flushed) != flushed:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    end = append(writer, b"lost" * 3000).end_physical_offset
    writer.kill()
    return flushed, end


def lose(paths: StorePaths, start: int, end: int) -> None:
    """Lose these bytes of the first log file, as if they never reached the disk."""
    with (paths.commit_log / f"{0:020d}").open("r+b") as file:
        file.seek(start)
        file.write(bytes(end - start))


def reboot(paths: StorePaths) -> None:
    """Simulate a reboot: all earlier writes belong to an earlier boot."""
    lines = [line.split() for line in paths.terms.read_text().splitlines()]
    text = "".join(f"{number} {end} another-boot\n" for number, end, _ in lines)
    write_checked(paths.terms, text.encode(), DiskStorage())


@pytest.mark.parametrize("lost", ["all of it", "its first page", "its last page"])
def test_unsynced_data_of_async_mode_is_truncated_after_a_power_cut(
    start_writer: StartWriter, tmp_path: Path, lost: str
) -> None:
    """The committed offset on disk is ahead of the log: no damage; the log ends at the synced data, and continues."""
    paths = StorePaths(tmp_path / "store")
    flushed, end = run_and_kill(start_writer, paths, "async")
    page = (flushed // 4096 + 1) * 4096
    start, stop = {"all of it": (flushed, end), "its first page": (flushed, page)}.get(lost, (end - 1000, end))
    lose(paths, start, stop)
    reboot(paths)
    writer = start_writer(FLUSH_MODE="async")
    recovered = writer.event("store_recovered")
    assert (recovered["damages"], recovered["recovered_end"]) == (0, flushed)
    after = append(writer, b"next")
    assert (after.physical_offset, after.queue_offset) == (flushed, 2)
    assert writer.terminate() == 0
    assert [record.body[:4] for _, record in stored_places(paths.root)] == [b"kept"] * 2 + [b"next"] * 2
    assert end < SEGMENT_SIZE


@pytest.mark.parametrize(("flush_mode", "rebooted"), [("sync", True), ("sync", False), ("async", False)])
def test_missing_promised_data_is_reported_as_damage(
    start_writer: StartWriter, tmp_path: Path, flush_mode: str, rebooted: bool
) -> None:
    """It was committed after its sync, or in this boot: nothing is cut, the place is reported, appends follow it."""
    paths = StorePaths(tmp_path / "store")
    flushed, end = run_and_kill(start_writer, paths, flush_mode)
    lose(paths, flushed, end)
    if rebooted:
        reboot(paths)
    writer = start_writer(FLUSH_MODE=flush_mode)
    recovered = writer.event("store_recovered")
    assert (recovered["damages"], recovered["recovered_end"]) == (1, end)
    assert append(writer, b"next").physical_offset == end
    assert writer.terminate() == 0
