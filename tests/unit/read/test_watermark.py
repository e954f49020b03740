"""The watermark: the limit up to which readers may read."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tidemark.errors import CorruptStoreError
from tidemark.read.file_run import FileRun
from tidemark.read.watermark import AttachedWatermarkReader, Watermark, WatermarkReader
from tidemark.replication.member_role import PublishedRole
from tidemark.store.marks import Marks
from tidemark.store.originals.terms import machine_boot_id
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    return StorePaths(tmp_path)


def marks_of(paths: StorePaths, *visible: int, term: int = 0, durable: int = 0) -> Marks:
    marks = Marks.open_to_write(paths.marks, DiskStorage(), shards=len(visible), term=term)
    for shard, offset in enumerate(visible):
        marks.publish(shard, offset)
        marks.publish_durable(shard, durable)
    return marks


def write_terms(paths: StorePaths, *lines: str) -> None:
    paths.writer.mkdir(parents=True, exist_ok=True)
    paths.terms.write_text("".join(f"{line}\n" for line in lines))


def write_confirm(paths: StorePaths, offset: int) -> None:
    paths.checkpoint.write_bytes(bytes(32) + struct.pack(">q", offset) + bytes(4056))


def read(paths: StorePaths) -> Watermark:
    return WatermarkReader(paths).read()


def test_the_watermark_of_a_store_that_was_never_indexed_is_zero(paths: StorePaths) -> None:
    assert read(paths) == Watermark(0, 0, 0, 0)


def test_the_watermark_is_the_least_visible_mark(paths: StorePaths) -> None:
    marks_of(paths, 300, 200, 900)
    watermark = read(paths)
    assert (watermark.term, watermark.physical_offset, watermark.committed_offset) == (0, 200, 200)
    assert watermark.published_ms > 0


def test_an_unchanged_watermark_is_the_same_object(paths: StorePaths) -> None:
    """Readers of a queue keep its bounds until the object changes."""
    marks = marks_of(paths, 30)
    reader = WatermarkReader(paths)
    first = reader.read()
    assert reader.read() is first
    marks.publish(0, 40)
    assert reader.read().physical_offset == 40


def test_a_member_may_lack_what_its_group_has_committed(paths: StorePaths) -> None:
    """A replica cannot know, and a new writer not before it has committed what its epoch began with."""
    marks = marks_of(paths, 200)
    reader = WatermarkReader(paths)
    assert not reader.read().is_behind
    role = PublishedRole(paths.replication, DiskStorage())
    reader.refresh()
    assert (reader.read().lag_bytes, reader.read().is_behind) == (0, True)
    role.write(7, 300, until_s=None)
    assert reader.read().is_behind
    marks.publish(0, 300)
    assert not reader.read().is_behind


def test_marks_of_an_older_term_are_capped_at_the_recovered_end(paths: StorePaths) -> None:
    """It is min(watermark, recovered end of every later term); every answer carries the current term."""
    write_terms(paths, f"1 0 {machine_boot_id()}", f"2 150 {machine_boot_id()}", f"3 180 {machine_boot_id()}")
    marks_of(paths, 200, term=1)
    assert read(paths)[:2] == (3, 150)


def test_the_committed_offset_is_the_confirm_offset_of_this_boot(paths: StorePaths) -> None:
    """A writer's last store is valid while the machine is up; it is never less than the watermark."""
    write_terms(paths, f"1 0 {machine_boot_id()}")
    marks_of(paths, 200, term=1)
    write_confirm(paths, 500)
    assert (read(paths).committed_offset, read(paths).lag_bytes) == (500, 300)
    write_confirm(paths, 100)
    assert (read(paths).committed_offset, read(paths).lag_bytes) == (200, 0)


def test_every_change_of_the_committed_offset_is_read(paths: StorePaths) -> None:
    write_terms(paths, f"1 0 {machine_boot_id()}")
    write_confirm(paths, 500)
    reader = WatermarkReader(paths)
    for offset in (500, 501, 1 << 40, 256, 255, 0):
        with paths.checkpoint.open("r+b") as file:
            file.seek(32)
            file.write(struct.pack(">q", offset))
        assert [reader.read().committed_offset for _ in range(2)] == [offset, offset]


@pytest.mark.parametrize("size", [0, 40])
def test_a_checkpoint_that_has_not_its_full_size_yet_is_not_read(paths: StorePaths, size: int) -> None:
    """The writer creates the file before it sets its size."""
    write_terms(paths, f"1 0 {machine_boot_id()}")
    marks_of(paths, 200, term=1)
    paths.checkpoint.write_bytes(bytes(size))
    reader = WatermarkReader(paths)
    reader.refresh()
    assert reader.read().committed_offset == 200
    write_confirm(paths, 500)
    reader.refresh()
    assert reader.read().committed_offset == 500


def test_after_a_reboot_only_durable_marks_are_used(paths: StorePaths) -> None:
    """Queue files may lack unsynced data, and the confirm offset is invalid before the next term."""
    write_terms(paths, "1 0 another-boot")
    marks_of(paths, 200, term=1, durable=120)
    words = bytearray(paths.marks.read_bytes())
    words[32:40] = bytes(8)  # the word that identifies the boot
    paths.marks.write_bytes(words)
    write_confirm(paths, 500)
    assert read(paths)[1:4:2] == (120, 120)


def test_the_confirm_offset_of_a_broker_store_is_ignored(paths: StorePaths) -> None:
    """Its confirm offset must not be used."""
    marks_of(paths, 200)
    write_confirm(paths, 500)
    assert read(paths).committed_offset == 200


def test_marks_created_later_are_noticed(paths: StorePaths) -> None:
    """Replaced marks are noticed too."""
    reader = WatermarkReader(paths)
    assert reader.read().physical_offset == 0
    marks_of(paths, 70)
    reader.refresh()
    assert reader.read().physical_offset == 70
    paths.marks.unlink()
    marks_of(paths, 30)
    reader.refresh()
    assert reader.read().physical_offset == 30


def test_unreadable_marks_give_watermark_zero_until_they_are_replaced(paths: StorePaths) -> None:
    """A reader starts despite them; the pipeline sets them aside."""
    paths.indexer.mkdir(parents=True)
    paths.marks.write_bytes(bytes(10))
    reader = WatermarkReader(paths)
    assert reader.read().physical_offset == 0
    with pytest.raises(CorruptStoreError):
        reader.refresh()
    paths.marks.unlink()
    marks_of(paths, 70)
    reader.refresh()
    assert reader.read().physical_offset == 70


def test_the_committed_offset_of_an_attached_store_follows_its_log(tmp_path: Path) -> None:
    """The end is the follower's, plus the unseen record past the watermark; a broker's checkpoint is not used."""
    broker = BuiltStore(tmp_path / "store", marked=False)
    broker.topic("T")
    seen = broker.append("T")
    paths = StorePaths(broker.root, state=tmp_path / "state")
    write_confirm(paths, 1 << 40)
    write_terms(paths, f"1 0 {machine_boot_id()}")
    marks = marks_of(paths, broker.end, term=1)
    reader = AttachedWatermarkReader(paths, FileRun(paths.commit_log))
    assert reader.read()[1:4:2] == (seen.size, seen.size)
    broker.append("T", unit=False)
    second = broker.end
    broker.append("T", unit=False)
    assert reader.read()[1:4:2] == (seen.size, second)
    marks.intend(0, broker.end)
    assert reader.read()[1:4:2] == (seen.size, broker.end)
