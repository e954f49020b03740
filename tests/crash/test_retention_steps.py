"""The writer dies between any two steps of retention; queue offsets are never reused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from services.writer.batch.batch import QueueKey
from services.writer.config import WriterSettings
from services.writer.log.open_store import open_store, release_store
from services.writer.log.queue_offsets import QueueOffsets, Snapshot, save_snapshot
from services.writer.retention.retention_thread import Retention, disk_use
from services.writer.retention.trusted_clock import TrustedClock
from services.writer.retention_policy import DiskUse, RetentionPolicy
from tests.builders import wire_batch
from tests.integration.writer.harness import RunningWriter, stored_records
from tests.marked import mark_durable
from tests.pipeline_runs import DERIVED, build, plan_of
from tests.unit.store.recording_storage import KilledHere, RecordingStorage
from tidemark.index.ledger import read_ledger
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.marks import Marks
from tidemark.store.originals.terms import current_term
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage, Storage

pytestmark = pytest.mark.crash

SIZE = 1 << 16
NEXT = {("gone", 0): 4, ("gone", 3): 4, ("lives", 0): 16}
OLD_ENOUGH = RetentionPolicy(1, 0)  # a millisecond
SETTINGS = {"consume_queue_file_size_bytes": 100, "index_slots": 16, "index_entries": 64}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a written and fully indexed store: two queues end in the first files, one continues."""
    root = tmp_path_factory.mktemp("template") / "store"
    with RunningWriter(root, commit_log_segment_size_bytes=SIZE) as writer:
        for topic, queue_id, count in (("gone", 0, 4), ("gone", 3, 4), ("lives", 0, 16)):
            for number in range(count):
                body = b"%s-%d-%d" % (topic.encode(), queue_id, number) + bytes(15_000)
                writer.append(topic, wire_batch((body, b"", 0)), queue_id=queue_id)
        term = writer.info().term
    build(plan_of(root, **SETTINGS))
    marks = Marks.open_to_write(StorePaths(root).marks, DiskStorage(), shards=3, term=0)
    for shard in range(marks.shards):
        marks.adopt_term(shard, term, end_offset=marks.durable_floor())
    marks.close()
    return root


def retention(
    root: Path, storage: Storage, policy: RetentionPolicy = OLD_ENOUGH, look: Callable[[Path], DiskUse] = disk_use
) -> Retention:
    """Return the retention of a store that no other process has open."""
    paths = StorePaths(root)
    return Retention(
        policy,
        MappedFileQueue(paths.commit_log, SIZE, storage),
        paths,
        paths.writer / "queue_offsets",
        term=current_term(paths.terms).number,
        interval_s=1,
        open_log=lambda: MappedFileQueue(paths.commit_log, SIZE),
        ask_for_snapshot=lambda: None,
        on_deleted=lambda: None,
        on_failure=lambda error: None,
        clock=TrustedClock(grace_ms=0),
        look=look,
    )


def next_offsets(root: Path) -> dict[tuple[str, int], int]:
    """Return the next offsets of a writer that starts now."""
    store = open_store(WriterSettings(store_root=root, commit_log_segment_size_bytes=SIZE), DiskStorage())
    try:
        assert store.recovered.damages == []
        return {(key.topic, key.queue_id): offset for key, offset in store.recovered.offsets}
    finally:
        release_store(store)


def delete_snapshot(root: Path) -> None:
    for path in StorePaths(root).writer.glob("queue_offsets*"):
        path.unlink()


def delete_queue_files(root: Path) -> None:
    for folder in DERIVED:
        shutil.rmtree(root / folder)


def put_snapshot(root: Path, position: int) -> None:
    """Write the only snapshot, of an earlier time; it has the queues that end early."""
    delete_snapshot(root)
    offsets = QueueOffsets()
    offsets.set(QueueKey("gone", 0), 4)
    save_snapshot(StorePaths(root).writer / "queue_offsets", Snapshot(position, 1, offsets), DiskStorage())


def age_snapshot(root: Path) -> None:
    """Make the snapshot older than records that have expired since."""
    put_snapshot(root, SIZE)


@pytest.mark.parametrize("then", [lambda root: None, delete_snapshot, delete_queue_files, age_snapshot])
def test_a_kill_between_any_two_retention_steps_reuses_no_queue_offset(
    template: Path, tmp_path: Path, then: Callable[[Path], None]
) -> None:
    """The snapshot or the queue files may be lost in addition; the rest of the log is a whole suffix."""
    deaths = 0
    for die_before in range(100):
        root = Path(shutil.copytree(template, tmp_path / f"{die_before}"))
        files = sorted(path.name for path in (root / "commitlog").iterdir())
        died = False
        try:
            retention(root, RecordingStorage(die_before=die_before)).run_once()
        except KilledHere:
            died = True
            deaths += 1
        left = sorted(path.name for path in (root / "commitlog").iterdir())
        assert left == files[-len(left) :]
        build(plan_of(root, **SETTINGS))
        then(root)
        assert next_offsets(root) == NEXT
        assert read_ledger(StorePaths(root).indexer) == []
        assert [record.queue_offset for record in stored_records(root)][-1] == 15
        if not died:
            assert len(left) == 1
            break
    assert deaths >= 5


def test_log_files_without_saved_queue_offsets_are_kept(template: Path, tmp_path: Path) -> None:
    """Without a snapshot nothing is deleted; with an earlier one the files that it covers are."""
    root = Path(shutil.copytree(template, tmp_path / "store"))
    delete_snapshot(root)
    assert retention(root, DiskStorage()).run_once() == 0
    put_snapshot(root, 2 * SIZE + 100)
    assert retention(root, DiskStorage()).run_once() == 2
    assert min(int(path.name) for path in (root / "commitlog").iterdir()) == 2 * SIZE


def test_files_of_any_age_are_deleted_until_the_disk_is_below_the_threshold(template: Path, tmp_path: Path) -> None:
    """The real files' blocks count; data that is not indexed in this term stays, however full the disk is."""
    root = Path(shutil.copytree(template, tmp_path / "store"))
    total = 1 << 30

    def look(folder: Path) -> DiskUse:
        assert folder == root / "commitlog"
        return DiskUse(total * 85 // 100 + 2 * SIZE - 20_000, total)

    assert retention(root, DiskStorage(), RetentionPolicy(0, 86), look).run_once() == 0
    assert retention(root, DiskStorage(), RetentionPolicy(0, 85), look).run_once() == 2
    mark_shard_0_of_an_older_term(root)
    assert retention(root, DiskStorage(), RetentionPolicy(0, 85), look).run_once() == 0


def mark_shard_0_of_an_older_term(root: Path) -> None:
    marks = Marks.open_to_write(StorePaths(root).marks, DiskStorage(), shards=3, term=0)
    marks.adopt_term(0, 0, end_offset=marks.durable_floor())
    marks.close()


def test_a_repeated_restart_after_retention_changes_nothing(template: Path, tmp_path: Path) -> None:
    """Each further writer on an expired store finds the same end, the same numbers, the same bytes."""
    root = Path(shutil.copytree(template, tmp_path / "store"))
    retention(root, DiskStorage()).run_once()
    before = {path.name: path.read_bytes() for path in (root / "commitlog").iterdir()}
    for _ in range(3):
        with RunningWriter(root, commit_log_segment_size_bytes=SIZE, retention_hours=1e-6, retention_interval_ms=10):
            mark_durable(root, current_term(StorePaths(root).terms).recovered_end)
        assert {path.name: path.read_bytes() for path in (root / "commitlog").iterdir()} == before
    assert next_offsets(root) == NEXT
