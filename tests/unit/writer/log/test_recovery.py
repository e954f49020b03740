from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.writer.batch.batch import QueueKey
from services.writer.log.queue_offsets import QueueOffsets, Snapshot, load_snapshot, save_snapshot
from services.writer.log.record_starts import RecordStarts
from services.writer.log.recovery import Recovered, advance, lower_tombstones, recover, zero_after
from services.writer.log.segments import Segments
from tests.builders import STORE_MS, Placed, blank_bytes, record_bytes, write_log
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.originals.tombstones import Tombstone, load_tombstones, save_tombstones
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

FILE_SIZE = 1 << 14
TOPIC = "TopicTest"


def records(count: int, *, first: int = 0, **fields: Any) -> list[dict[str, Any]]:
    """Return the fields of *count* records of one queue, numbered densely."""
    return [{"queue_offset": first + number, **fields} for number in range(count)]


class Store:
    """A store whose log a test writes, and its recovery."""

    def __init__(self, root: Path, file_size: int = FILE_SIZE) -> None:
        self.file_size = file_size
        self.paths = StorePaths(root)
        self.disk = DiskStorage()
        self.paths.writer.mkdir(parents=True)
        self.paths.checkpoint.parent.mkdir(exist_ok=True)

    def write(self, fields: list[dict[str, Any]]) -> list[Placed]:
        return write_log(self.paths.log_folders.all[0], self.file_size, fields)

    def overwrite(self, at: int, data: bytes) -> None:
        start = at - at % self.file_size
        with (self.paths.log_folders.all[0] / f"{start:020d}").open("r+b") as file:
            file.seek(at - start)
            file.write(data)

    def open(self) -> Segments:
        return Segments(MappedFileQueue(self.paths.log_folders.all[0], self.file_size, self.disk))

    def recover(self, rebuild_bytes: int = 1 << 20, **more: int) -> Recovered:
        segments = self.open()
        try:
            return recover(self.paths, segments, rebuild_bytes=rebuild_bytes, **more)
        finally:
            segments.log.close()

    def log_bytes(self) -> bytes:
        return b"".join(path.read_bytes() for path in sorted(self.paths.log_folders.all[0].iterdir()))

    def make_durable(self, end: int) -> None:
        """Note in the checkpoint that everything below *end* is committed and synced."""
        checkpoint = Checkpoint.open_to_write(self.paths.checkpoint, self.disk)
        checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, end)
        checkpoint.flush()
        checkpoint.close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def end_of(placed: Placed) -> int:
    return placed.physical_offset + len(placed.data)


def test_a_whole_log_ends_after_its_last_record(store: Store) -> None:
    placed = store.write([*records(3), *records(2, queue_id=1, store_timestamp=STORE_MS + 5)])
    before = store.log_bytes()
    found = store.recover()
    assert (found.end, found.store_timestamp, found.damages) == (end_of(placed[-1]), STORE_MS + 5, [])
    assert dict(found.offsets) == {QueueKey(TOPIC, 0): 3, QueueKey(TOPIC, 1): 2}
    assert store.log_bytes() == before


def test_a_torn_record_is_cut_with_everything_after_it(store: Store) -> None:
    """Later records may be whole, but they were never acknowledged and must not reappear."""
    placed = store.write(records(4))
    store.overwrite(end_of(placed[2]) - 3, b"\xff")
    store.overwrite(placed[2].physical_offset + 90, bytes(8))  # inside its body
    whole = store.log_bytes()[: placed[2].physical_offset]
    found = store.recover()
    assert found.end == placed[2].physical_offset
    assert found.offsets.next(QueueKey(TOPIC, 0)) == 2
    assert store.log_bytes() == whole.ljust(FILE_SIZE, b"\0")


def test_a_torn_record_below_the_durable_offset_is_reported_and_kept(store: Store) -> None:
    placed = store.write(records(4, body=b"x" * 100))
    store.make_durable(end_of(placed[-1]))
    store.overwrite(placed[1].physical_offset + 100, b"\xff\xff")
    before = store.log_bytes()
    found = store.recover()
    assert found.end == end_of(placed[-1])
    assert [damage.physical_offset for damage in found.damages] == [placed[1].physical_offset]
    assert found.offsets.next(QueueKey(TOPIC, 0)) == 4
    assert store.log_bytes() == before


def test_a_log_that_ends_with_a_blank_record_continues_in_its_place(store: Store) -> None:
    """Recovery at a kill between the blank record and the next file (docs/format.md §2)."""
    placed = store.write(records(2))
    end = end_of(placed[-1])
    store.overwrite(end, blank_bytes(FILE_SIZE - end))
    assert store.recover().end == end
    assert store.log_bytes()[end:] == bytes(FILE_SIZE - end)


def test_records_of_several_files_are_found(store: Store) -> None:
    placed = store.write(records(12, body=b"x" * 4000))
    found = store.recover()
    assert found.end == end_of(placed[-1]) > 2 * FILE_SIZE
    assert found.offsets.next(QueueKey(TOPIC, 0)) == 12


def test_the_snapshot_provides_offsets_of_queues_without_records(store: Store) -> None:
    """A queue whose messages are all gone from the log keeps its number."""
    placed = store.write(records(3))
    offsets = QueueOffsets()
    offsets.set(QueueKey("gone", 2), 77)
    offsets.set(QueueKey(TOPIC, 0), 2)
    save_snapshot(
        store.paths.writer / "queue_offsets", Snapshot(placed[2].physical_offset, STORE_MS, offsets), store.disk
    )
    assert dict(store.recover().offsets) == {QueueKey("gone", 2): 77, QueueKey(TOPIC, 0): 3}


def test_a_snapshot_of_lost_records_is_ignored(store: Store) -> None:
    """Continuing from its queue offsets would leave a permanent hole."""
    placed = store.write(records(3))
    offsets = QueueOffsets()
    offsets.set(QueueKey(TOPIC, 0), 9)
    lost = Snapshot(end_of(placed[-1]) + 1000, STORE_MS + 9, offsets)
    save_snapshot(store.paths.writer / "queue_offsets", lost, store.disk)
    found = store.recover()
    assert (found.end, found.store_timestamp) == (end_of(placed[-1]), STORE_MS)
    assert dict(found.offsets) == {QueueKey(TOPIC, 0): 3}


def test_a_deleted_topic_keeps_its_numbers(store: Store) -> None:
    store.write(records(1))
    save_tombstones(store.paths.tombstones, [Tombstone("deleted", 0, {0: 5, 3: 8})], store.disk)
    found = store.recover()
    assert (found.offsets.next(QueueKey("deleted", 0)), found.offsets.next(QueueKey("deleted", 3))) == (5, 8)


def test_an_impossible_queue_offset_is_reported_and_ignored(store: Store) -> None:
    """More numbers are missing before it than records fit into the bytes between: it is damage."""
    placed = store.write([*records(2), {"queue_offset": 1 << 40}, {"queue_offset": 2}])
    found = store.recover()
    assert found.offsets.next(QueueKey(TOPIC, 0)) == 3
    assert [(one.physical_offset, one.reason) for one in found.damages] == [(placed[2].physical_offset, "QUEUE_OFFSET")]


def test_half_messages_of_a_broker_use_no_queue_offset(store: Store) -> None:
    prepared = 4  # MessageSysFlag.TRANSACTION_PREPARED_TYPE
    store.write([*records(2), {"queue_offset": 50, "sys_flag": prepared}])
    assert store.recover().offsets.next(QueueKey(TOPIC, 0)) == 2


def test_tombstones_above_the_end_are_lowered_to_it(store: Store) -> None:
    """A topic was deleted after records that are lost: later records at their place belong to a living topic."""
    stones = [Tombstone("a", 100, {0: 1}), Tombstone("b", 5000, {0: 2})]
    save_tombstones(store.paths.tombstones, stones, store.disk)
    lower_tombstones(store.paths, 3000, store.disk)
    assert load_tombstones(store.paths.tombstones) == [stones[0], stones[1]._replace(physical_offset=3000)]


def test_a_cut_leaves_zeros_and_at_most_one_empty_file(store: Store) -> None:
    placed = store.write(records(12, body=b"x" * 4000))
    segments = store.open()
    assert len(segments.log.starts) >= 4
    zero_after(segments, placed[1].physical_offset)
    kept = store.log_bytes()
    segments.log.close()
    assert kept == placed[0].data.ljust(len(kept), b"\0")
    assert len(kept) <= 2 * FILE_SIZE


REBUILD_BYTES = 1 << 21


@pytest.fixture
def long_store(tmp_path: Path) -> Store:
    """Return a store of 4 MiB in one file, whose writer stopped in order."""
    store = Store(tmp_path, file_size=8 << 20)
    starts = RecordStarts(REBUILD_BYTES)
    placed = store.write(records(1000, body=b"x" * 4000))
    for one in placed:
        starts.note(one.physical_offset)
    offsets = QueueOffsets()
    offsets.set(QueueKey(TOPIC, 0), 1000)
    save_snapshot(
        store.paths.writer / "queue_offsets", Snapshot(end_of(placed[-1]), STORE_MS, offsets, starts.all()), store.disk
    )
    return store


def test_only_the_tail_for_recent_batches_is_read(long_store: Store) -> None:
    """It begins at a record within the file; the next snapshot knows such places, too."""
    found = long_store.recover(REBUILD_BYTES)
    read = found.end - found.scanned_from
    assert REBUILD_BYTES <= read < REBUILD_BYTES * 1.6
    assert found.offsets.next(QueueKey(TOPIC, 0)) == 1000
    assert not found.damages
    assert found.record_starts[0] == found.scanned_from


def test_a_file_is_read_from_its_start_if_no_record_is_where_one_was(long_store: Store) -> None:
    """Damage is then found as before."""
    at = long_store.recover(REBUILD_BYTES).scanned_from
    long_store.overwrite(at, bytes(200))
    long_store.make_durable(at + (1 << 20))
    found = long_store.recover(REBUILD_BYTES)
    assert found.scanned_from == 0
    assert [damage.physical_offset for damage in found.damages] == [at]
    assert found.offsets.next(QueueKey(TOPIC, 0)) == 1000


def test_a_replica_reads_from_the_last_known_record_on_and_keeps_the_places_for_a_writer(long_store: Store) -> None:
    """The role that it may take next reads the tail."""
    saved = load_snapshot(long_store.paths.writer / "queue_offsets")
    assert saved is not None
    found = long_store.recover(0, tail_bytes=REBUILD_BYTES)
    assert found.scanned_from == saved.record_starts[-1]
    assert found.end == saved.position
    assert found.offsets.next(QueueKey(TOPIC, 0)) == 1000
    assert found.record_starts == saved.record_starts


def test_offsets_of_a_longer_log_keep_the_earlier_record_starts(long_store: Store) -> None:
    saved = load_snapshot(long_store.paths.writer / "queue_offsets")
    assert saved is not None
    more = record_bytes(queue_offset=1000, physical_offset=saved.position)
    long_store.overwrite(saved.position, more)
    segments = long_store.open()
    longer = advance(saved, segments.log, saved.position + len(more), tail_bytes=REBUILD_BYTES)
    segments.log.close()
    assert longer.offsets.next(QueueKey(TOPIC, 0)) == 1001
    assert longer.record_starts[: len(saved.record_starts)] == saved.record_starts


def test_a_tail_that_was_lost_before_the_end_is_noticed(long_store: Store) -> None:
    """As after a clean stop, whose log was then replaced by an older copy."""
    whole = long_store.recover(REBUILD_BYTES)
    lost = whole.end - 50_000
    long_store.overwrite(lost, bytes(whole.end - lost))
    assert long_store.recover(0, tail_bytes=REBUILD_BYTES).end <= lost


def test_records_after_the_saved_end_are_read(long_store: Store) -> None:
    end = long_store.recover().end
    more = record_bytes(queue_offset=1000, physical_offset=end)
    long_store.overwrite(end, more)
    found = long_store.recover(0)
    assert (found.scanned_from, found.end) == (end, end + len(more))
    assert found.offsets.next(QueueKey(TOPIC, 0)) == 1001


def test_record_starts_above_the_needed_tail_are_not_used(long_store: Store) -> None:
    assert long_store.recover(3 << 20).scanned_from < long_store.recover(REBUILD_BYTES).scanned_from
