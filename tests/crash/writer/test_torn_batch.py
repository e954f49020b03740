"""A batch of several messages that reached the disk in part: nothing of it is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from services.writer.journal import BatchJournal, Stretch, first_torn, owner_of, read_journal
from services.writer.recover import recover
from services.writer.segments import Segments
from tests.builders import properties, wire_batch
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage
from tidemark.v1 import commit_log_pb2 as pb

from .process import SEGMENT_SIZE, WriterProcess

pytestmark = pytest.mark.crash

STORAGE = DiskStorage()
BATCH = wire_batch(*[(b"body %d" % i, properties({"UNIQ_KEY": f"k{i}", "name": "a value"}), i) for i in range(3)])


def test_a_batch_torn_at_any_byte_is_cut_whole(start_writer: Callable[..., WriterProcess], tmp_path: Path) -> None:
    """Killed while it was written: between its records, in a body, in a property or in a head, all of it goes."""
    writer = start_writer()
    request = pb.AppendBatchRequest(topic="t", queue_id=0, packed=BATCH)
    first = pb.AppendBatchRequest(topic="t", queue_id=0, packed=wire_batch((b"first", b"", 0)))
    start = writer.log.AppendBatch(first, timeout=10).end_physical_offset
    end = writer.log.AppendBatch(request, timeout=10).end_physical_offset
    writer.kill()
    assert end > start, "it is no repeat of what was there"
    paths = StorePaths(tmp_path / "store")
    path = paths.commit_log / f"{0:020d}"
    whole = path.read_bytes()
    confirm(paths, start)
    for torn in range(start, end):
        if not any(whole[torn:end]):
            break
        path.write_bytes(whole[:torn] + bytes(len(whole) - torn))
        assert recovered_end(paths) == start, torn
        assert path.read_bytes() == whole[:start] + bytes(len(whole) - start)
    hole = start + 123 + 88  # the second record's body
    assert whole[hole : hole + 6] == b"body 1"
    path.write_bytes(whole[:hole] + bytes(6) + whole[hole + 6 :])
    assert recovered_end(paths) == start, "a hole is as bad as a torn end"
    path.write_bytes(whole)
    assert recovered_end(paths) == end, "a whole one is kept"


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


@pytest.fixture
def abort(tmp_path: Path) -> Path:
    path = tmp_path / "abort"
    path.write_text("1")
    return path


def test_journal_tells_what_was_written_last(tmp_path: Path, abort: Path) -> None:
    """Entries come back ascending; a ring's worth of them at most."""
    journal = BatchJournal(tmp_path / "batches", STORAGE, owner_of(abort))
    written = [Stretch(i * 10, i * 10 + 10, i) for i in range(70_000)]
    for first in range(0, 70_000, 700):
        journal.write(written[first : first + 700])
    journal.close()
    assert read_journal(tmp_path / "batches", owner_of(abort)) == written[-65_536:]


def test_forgotten_batches_are_not_told(tmp_path: Path, abort: Path) -> None:
    """What was taken back is gone, and what is written in its place counts."""
    journal = BatchJournal(tmp_path / "batches", STORAGE, owner_of(abort))
    journal.write([Stretch(0, 10, 1)])
    journal.write([Stretch(10, 500, 2), Stretch(500, 600, 3)])
    journal.forget(2)
    assert read_journal(tmp_path / "batches", owner_of(abort)) == [Stretch(0, 10, 1)]
    journal.write([Stretch(10, 20, 4)])
    journal.close()
    assert read_journal(tmp_path / "batches", owner_of(abort)) == [Stretch(0, 10, 1), Stretch(10, 20, 4)]


def test_journal_of_another_run_tells_nothing(tmp_path: Path, abort: Path) -> None:
    """A broker that opened the store since made `abort` anew: what we know may no longer be true."""
    BatchJournal(tmp_path / "batches", STORAGE, owner_of(abort)).close()
    abort.unlink()
    assert read_journal(tmp_path / "batches", owner_of(abort)) == []
    abort.write_text("2")
    assert read_journal(tmp_path / "batches", owner_of(abort)) == []


def test_torn_entries_are_skipped(tmp_path: Path, abort: Path) -> None:
    """An entry that fails its own check says nothing, whatever byte is wrong."""
    journal = BatchJournal(tmp_path / "batches", STORAGE, owner_of(abort))
    journal.write([Stretch(0, 10, 1), Stretch(10, 20, 2)])
    journal.close()
    path = tmp_path / "batches"
    whole = path.read_bytes()
    for at in range(64, 96):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert read_journal(path, owner_of(abort)) == [Stretch(0, 10, 1)]
    path.write_bytes(whole[:80])
    assert read_journal(path, owner_of(abort)) == [Stretch(0, 10, 1)]


def test_below_the_floor_nothing_is_torn(tmp_path: Path) -> None:
    """A stretch that starts below the floor is not looked at: damage there is the ledger's."""
    folder = tmp_path / "commitlog"
    folder.mkdir()
    (folder / f"{0:020d}").write_bytes(bytes(4096))
    log = MappedFileQueue(folder, 4096)
    stretches = [Stretch(0, 10, 1), Stretch(10, 20, 2)]
    assert first_torn(log, stretches, 0) == 0
    assert first_torn(log, stretches, 5) == 10
    assert first_torn(log, stretches, 11) is None
    log.close()
