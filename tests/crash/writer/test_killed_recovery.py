"""Recovery that is itself killed, at any of its steps, and obstacles to it: the next one finds no damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from services.writer.log.open_store import open_store, release_store
from services.writer.log.recovery import lower_tombstones
from tests.crash.pipeline.test_every_write import DyingStorage, Killed
from tests.crash.simulated_disk.boots import FIRST, NEXT, booted
from tests.crash.simulated_disk.in_process import SEGMENT_SIZE, InProcessWriter
from tests.crash.simulated_disk.operations import Sync, Unlink
from tests.crash.simulated_disk.pipeline import drain
from tests.crash.simulated_disk.promises import Sent
from tests.crash.simulated_disk.recorder import Recorder
from tidemark.errors import StoreError
from tidemark.index.end_of_log import durable_floor
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.marks import Marks
from tidemark.store.originals.terms import begin_term
from tidemark.store.originals.tombstones import Tombstone, load_tombstones, save_tombstones
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.crash

STORAGE = DiskStorage()


def append(writer: InProcessWriter, *numbers: int) -> list[int]:
    """Append these batches; return their ends."""
    ends = []
    for number in numbers:
        (answer,) = writer.append(Sent(number, "t").request())
        assert not isinstance(answer, StoreError)
        ends.append(answer.end_physical_offset)
    return ends


def test_a_kill_while_a_truncated_async_store_opens_in_sync_mode_loses_nothing_more(folder: Path) -> None:
    """The marks are ahead of the remaining log. Until a new term is written, the flushed offset must stay the floor."""
    root = folder / "lost"
    with booted(FIRST):
        writer = InProcessWriter(root, commit_log_segment_size_bytes=SEGMENT_SIZE, flush_mode="async")
        ends = append(writer, 0, 1, 2, 3)
        drain(root)
        writer.abandon()
    kept = ends[1]
    with (root / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(kept)
        file.write(bytes(SEGMENT_SIZE - kept))
    with (root / "tidemark" / "writer" / "flushed").open("r+b") as file:
        file.seek(8)
        file.write(kept.to_bytes(8, "little"))
    for lives in range(1000):
        shutil.rmtree(folder / "copy", ignore_errors=True)
        copy = Path(shutil.copytree(root, folder / "copy"))
        settings = InProcessWriter.settings_of(copy, commit_log_segment_size_bytes=SEGMENT_SIZE)
        with booted(NEXT):
            try:
                release_store(open_store(settings, DyingStorage(lives)))
                break
            except Killed:
                pass
            store = open_store(settings, STORAGE)
            release_store(store)
        assert (store.recovered.end, store.recovered.damages) == (kept, []), f"killed at write {lives}"
    assert lives > 10


def test_the_journal_used_by_recovery_is_synced_before_its_deletion(folder: Path) -> None:
    """Otherwise a power cut during recovery would cut data that was already in the log and synced."""
    root = folder / "store"
    with booted(FIRST):
        writer = InProcessWriter(root, commit_log_segment_size_bytes=SEGMENT_SIZE, flush_mode="async")
        append(writer, 0)
        writer.abandon()
        with Recorder(root) as recorder:
            settings = InProcessWriter.settings_of(root, commit_log_segment_size_bytes=SEGMENT_SIZE)
            release_store(open_store(settings, recorder.storage(STORAGE)))
    journal = "tidemark/writer/batches"
    synced = recorder.trace.index(Sync(recorder.files[journal]))
    assert synced < recorder.trace.index(Unlink(journal))


@pytest.mark.parametrize("content", [b"", bytes(4096)])
def test_incomplete_marks_do_not_stop_a_writer(tmp_path: Path, content: bytes) -> None:
    """A pipeline was killed while it created the file: nothing is marked."""
    paths = StorePaths(tmp_path)
    paths.indexer.mkdir(parents=True)
    paths.marks.write_bytes(content)
    assert durable_floor(paths, MappedFileQueue(paths.commit_log, 4096)) == 0


def test_marks_of_an_older_term_are_capped_at_later_recovered_ends(tmp_path: Path) -> None:
    """After a loss in async mode they are ahead of the log until the pipeline adopts the new term."""
    paths = StorePaths(tmp_path)
    paths.commit_log.mkdir(parents=True)
    (paths.commit_log / f"{0:020d}").write_bytes(bytes(4096))
    begin_term(paths.terms, 0, STORAGE)
    marks = Marks.open_to_write(paths.marks, STORAGE, shards=2, term=1)
    marks.publish_durable(0, 3000)
    log = MappedFileQueue(paths.commit_log, 4096)
    assert durable_floor(paths, log) == 3000
    begin_term(paths.terms, 2000, STORAGE)
    assert durable_floor(paths, log) == 2000
    marks.adopt_term(0, 2, end_offset=2000)
    marks.publish_durable(0, 2500)
    assert durable_floor(paths, log) == 2500
    marks.close()
    log.close()


def test_a_tombstone_after_lost_records_is_lowered_to_the_end(tmp_path: Path) -> None:
    """Otherwise messages appended there to a new topic of the same name would be dead, too."""
    paths = StorePaths(tmp_path)
    paths.writer.mkdir(parents=True)
    stones = [Tombstone("lost", 900, {0: 7}), Tombstone("kept", 300, {0: 2})]
    save_tombstones(paths.tombstones, stones, STORAGE)
    lower_tombstones(paths, 500, STORAGE)
    assert load_tombstones(paths.tombstones) == [Tombstone("lost", 500, {0: 7}), Tombstone("kept", 300, {0: 2})]
