"""A batch of several messages that reached the disk in part: nothing of it is kept."""

from __future__ import annotations

import random
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from services.writer.log.batch_journal import BatchJournal
from services.writer.log.recovery import recover
from services.writer.log.segments import Segments
from tests.builders import properties, wire_batch
from tidemark.index.end_of_log import find_end_of_log
from tidemark.store.batch_journal import BatchRange, Journal, encode_abort, journaled_end, read_journal
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage
from tidemark.v1 import commit_log_pb2 as pb

from .process import SEGMENT_SIZE, WriterProcess

pytestmark = pytest.mark.crash

STORAGE = DiskStorage()
BATCH = wire_batch(*[(b"body %d" % i, properties({"UNIQ_KEY": f"k{i}", "name": "a value"}), i) for i in range(3)])


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_a_batch_torn_at_any_byte_is_cut_completely(
    start_writer: Callable[..., WriterProcess], tmp_path: Path, step: int
) -> None:
    """The write was killed between records, in a body, a property or a head: in each case all of it is cut."""
    writer = start_writer()
    request = pb.AppendBatchRequest(topic="t", queue_id=0, packed=BATCH)
    first = pb.AppendBatchRequest(topic="t", queue_id=0, packed=wire_batch((b"first", b"", 0)))
    start = writer.log.AppendBatch(first, timeout=10).end_physical_offset
    end = writer.log.AppendBatch(request, timeout=10).end_physical_offset
    writer.kill()
    assert end > start, "the new batch must not count as a duplicate"
    paths = StorePaths(tmp_path / "store")
    path = paths.commit_log / f"{0:020d}"
    whole = path.read_bytes()
    confirm(paths, start)
    for torn in range(start, end, step):
        if not any(whole[torn:end]):
            break
        path.write_bytes(whole[:torn] + bytes(len(whole) - torn))
        log = MappedFileQueue(paths.commit_log, SEGMENT_SIZE)
        assert find_end_of_log(paths, log) == start, "a pipeline without a writer must not see a part of it"
        log.close()
        assert recovered_end(paths) == start, torn
        assert path.read_bytes() == whole[:start] + bytes(len(whole) - start)
    hole = start + 123 + 88  # the second record's body
    assert whole[hole : hole + 6] == b"body 1"
    path.write_bytes(whole[:hole] + bytes(6) + whole[hole + 6 :])
    assert recovered_end(paths) == start, "a hole must count as a torn end"
    path.write_bytes(whole)
    assert recovered_end(paths) == end, "a whole batch must be kept"


def confirm(paths: StorePaths, offset: int) -> None:
    checkpoint = Checkpoint.open_to_write(paths.checkpoint, STORAGE)
    checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, offset)
    checkpoint.flush()
    checkpoint.close()


def recovered_end(paths: StorePaths) -> int:
    segments = Segments(MappedFileQueue(paths.commit_log, SEGMENT_SIZE, STORAGE))
    try:
        return recover(paths, segments, rebuild_bytes=0).end
    finally:
        segments.log.close()


ABORT = bytes(range(16))


def open_journal(root: Path, *, start: int = 0, token: bytes = ABORT) -> BatchJournal:
    """Return the journal of the run whose `abort` file exists."""
    paths = StorePaths(root)
    paths.writer.mkdir(parents=True, exist_ok=True)
    if not paths.abort.exists():
        paths.abort.write_bytes(encode_abort(token))
    return BatchJournal(paths.writer / "batches", STORAGE, token=token, start=start)


def journaled_stretches(root: Path) -> list[BatchRange]:
    """Return the journal's entries for the next run."""
    journal = read_journal(StorePaths(root).writer / "batches", StorePaths(root).abort)
    return [] if journal is None else journal.stretches


def test_the_journal_holds_the_latest_batches(tmp_path: Path) -> None:
    """Entries are ascending, and at most as many as the ring holds."""
    journal = open_journal(tmp_path)
    written = [BatchRange(i * 10, i * 10 + 10, i) for i in range(70_000)]
    for first in range(0, 70_000, 700):
        journal.write(written[first : first + 700])
    journal.close()
    assert journaled_stretches(tmp_path) == written[-65_536:]


def test_forgotten_batches_are_not_in_the_journal(tmp_path: Path) -> None:
    """Batches that were undone are gone, and batches in their place count."""
    journal = open_journal(tmp_path)
    journal.write([BatchRange(0, 10, 1)])
    journal.write([BatchRange(10, 500, 2), BatchRange(500, 600, 3)])
    journal.take_back(2)
    assert journaled_stretches(tmp_path) == [BatchRange(0, 10, 1)]
    journal.write([BatchRange(10, 20, 4)])
    journal.close()
    assert journaled_stretches(tmp_path) == [BatchRange(0, 10, 1), BatchRange(10, 20, 4)]


def test_a_journal_of_another_run_is_ignored(tmp_path: Path) -> None:
    """A broker that opened the store since created `abort` anew: the journal may no longer be true."""
    journal = open_journal(tmp_path)
    journal.write([BatchRange(0, 10, 1)])
    journal.close()
    abort = StorePaths(tmp_path).abort
    for content in (b"4711", b"4711 " + bytes(16).hex().encode(), b"", b"4711 no-token"):
        abort.write_bytes(content)
        assert read_journal(StorePaths(tmp_path).writer / "batches", abort) is None
    abort.unlink()
    assert read_journal(StorePaths(tmp_path).writer / "batches", abort) is None


def test_a_copied_store_keeps_its_journal(tmp_path: Path) -> None:
    """The content of `abort` identifies the run, not the file's place or time."""
    journal = open_journal(tmp_path / "store", start=7)
    journal.write([BatchRange(7, 10, 1)])
    journal.close()
    shutil.copytree(tmp_path / "store", tmp_path / "copy", copy_function=shutil.copyfile)
    copied = StorePaths(tmp_path / "copy")
    assert read_journal(copied.writer / "batches", copied.abort) == Journal(
        7, [BatchRange(7, 10, 1)], has_wrapped=False
    )


def test_torn_entries_are_skipped(tmp_path: Path) -> None:
    """An entry with a wrong check is ignored, whichever byte is wrong; a torn head invalidates the journal."""
    journal = open_journal(tmp_path)
    journal.write([BatchRange(0, 10, 1), BatchRange(10, 20, 2)])
    journal.close()
    path = StorePaths(tmp_path).writer / "batches"
    whole = path.read_bytes()
    for at in range(64, 96):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert journaled_stretches(tmp_path) == [BatchRange(0, 10, 1)]
    path.write_bytes(whole[:80])
    assert journaled_stretches(tmp_path) == [BatchRange(0, 10, 1)]
    for at in range(28):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert read_journal(path, StorePaths(tmp_path).abort) is None


class Row(NamedTuple):
    """A log of 4 KiB files with some bytes, and its journal's entries."""

    paths: StorePaths
    log: MappedFileQueue

    def stretch(self, start: int, end: int) -> BatchRange:
        return BatchRange(start, end, zlib.crc32(self.log.read(start, end - start)))

    def end(self, *stretches: BatchRange, start: int = 0, floor: int = 0) -> int:
        journal = open_journal(self.paths.root, start=start)
        journal.write(list(stretches))
        journal.close()
        return journaled_end(self.paths, self.log, floor)


@pytest.fixture
def row(tmp_path: Path) -> Iterator[Row]:
    paths = StorePaths(tmp_path)
    paths.commit_log.mkdir()
    for start in (0, 4096):
        (paths.commit_log / f"{start:020d}").write_bytes(random.Random(start).randbytes(4096))
    log = MappedFileQueue(paths.commit_log, 4096)
    yield Row(paths, log)
    log.close()


def test_the_log_ends_after_the_last_consecutive_whole_batch(row: Row) -> None:
    """It ends before the first batch that differs from its entry, may cross a roll, and ends with the last entry."""
    first, second, third = row.stretch(0, 100), row.stretch(100, 300), row.stretch(4096, 4200)
    assert row.end() == 0
    assert row.end(first, second) == 300
    assert row.end(first, second, third) == 4200
    assert row.end(first, second._replace(crc=5), third) == 100
    assert row.end(first, third) == 4200, "the part before a roll has any length: only the blank record ends it"


def test_a_batch_without_a_journal_entry_is_torn(row: Row) -> None:
    """Its entry did not reach the disk, its records did in part: the log ends before it."""
    assert row.end(row.stretch(0, 100), row.stretch(200, 300)) == 100
    assert row.end(row.stretch(50, 100)) == 0


def test_batches_below_the_floor_are_not_checked_against_the_journal(row: Row) -> None:
    """Damage there is reported in the ledger. The same holds for data from before the run."""
    torn = BatchRange(0, 100, 1)
    assert row.end(torn, row.stretch(100, 200), floor=100) == 200
    assert row.end(torn, row.stretch(100, 200), floor=50) == 200
    assert row.end(row.stretch(100, 200), start=100) == 200
    assert row.end(floor=700) == row.end(start=700) == 700


def test_records_older_than_the_journal_ring_are_checked_by_themselves(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more batches than the ring holds and an old floor, older records are checked by themselves."""
    monkeypatch.setattr("services.writer.log.batch_journal.ENTRIES", 4)
    monkeypatch.setattr("tidemark.store.batch_journal.ENTRIES", 4)
    batches = [row.stretch(at, at + 10) for at in range(0, 100, 10)]
    assert row.end(*batches[:4]) == 40
    journal = open_journal(row.paths.root)
    for batch in batches:
        journal.write([batch])
    journal.close()
    assert journaled_end(row.paths, row.log, 0) == 100


def test_without_a_journal_the_log_may_reach_the_files_end(row: Row) -> None:
    """The directory is a broker's, or its journal is another run's."""
    assert journaled_end(row.paths, row.log, 0) == 8192
    row.end(row.stretch(0, 100))
    row.paths.abort.write_bytes(b"4711")
    assert journaled_end(row.paths, row.log, 0) == 8192
