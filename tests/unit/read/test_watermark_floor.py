"""Visible bytes stay visible when marks go back, queue files vanish, or the writer cuts the log."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tidemark.read.pull import PullRequest, PullResult, PullStatus, pull
from tidemark.read.queue_reader import QueueBounds
from tidemark.read.store_reader import StoreReader
from tidemark.read.unit_run import UnitsGoneError
from tidemark.store.originals.terms import machine_boot_id

Regressions = list[tuple[int, int]]
COUNT = 10
TOPICS = pytest.mark.parametrize("topic", ["orders", "batches"])


@pytest.fixture
def filled(built: BuiltStore) -> BuiltStore:
    for number in range(COUNT):
        built.append("orders", f"m{number}".encode())
        built.append_batch("batches", [(b"x", {}, 0)])
    built.publish()
    return built


@pytest.fixture
def regressions() -> Regressions:
    return []


@pytest.fixture
def store(filled: BuiltStore, regressions: Regressions) -> StoreReader:
    """Return a reader that has read everything."""
    store = StoreReader(filled.root, on_regressed=lambda *offsets: regressions.append(offsets), refresh_s=0)
    assert store.watermark().physical_offset == filled.end
    for topic in ("orders", "batches"):
        assert bounds(store, topic).max_offset == COUNT
    return store


def bounds(store: StoreReader, topic: str) -> QueueBounds:
    return store.bounds(store.queue(topic, 0), store.watermark())


def pulled(store: StoreReader, topic: str, offset: int) -> PullResult:
    return pull(store.queue(topic, 0), store.log, bounds(store, topic), PullRequest(offset, 100, 1 << 20))


def steady(store: StoreReader, topic: str, offset: int) -> PullResult:
    """Retry after files were removed meanwhile, as each reader does."""
    try:
        return pulled(store, topic, offset)
    except UnitsGoneError:
        return pulled(store, topic, offset)


def begin_term(root: Path, number: int, recovered_end: int) -> None:
    path = root / "tidemark" / "writer" / "terms"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(f"{number} {recovered_end} {machine_boot_id()}\n")


def test_decreasing_marks_are_reported_once_and_not_published(
    filled: BuiltStore, store: StoreReader, regressions: Regressions
) -> None:
    """This also holds across a new term that has cut nothing."""
    begin_term(filled.root, 1, filled.end)
    filled.publish(100)
    for _ in range(3):
        seen = store.watermark()
        assert (seen.physical_offset, seen.committed_offset, seen.is_held) == (filled.end, filled.end, True)
    filled.publish(0)
    assert store.watermark().physical_offset == filled.end
    assert regressions == [(filled.end, 100)]
    filled.publish()
    assert not store.watermark().is_held
    filled.publish(200)
    assert store.watermark().physical_offset == filled.end
    assert regressions == [(filled.end, 100), (filled.end, 200)]


@TOPICS
def test_a_queue_keeps_its_end_while_its_units_are_rebuilt(filled: BuiltStore, store: StoreReader, topic: str) -> None:
    """The pipeline has removed the files and lowered the marks: readers wait, and nothing is reported as lost."""
    folders = [filled.root / name for name in ("consumequeue", "batchconsumequeue")]
    for folder in folders:
        shutil.copytree(folder, folder.with_name(f"{folder.name}.away"))
        shutil.rmtree(folder)
    filled.publish(0)
    found = steady(store, topic, 4)
    assert (found.status, found.next_offset, found.skipped) == (PullStatus.NO_MATCHED_MESSAGE, 4, [])
    assert (found.bounds.min_offset, found.bounds.max_offset) == (0, COUNT)
    for folder in folders:
        folder.with_name(f"{folder.name}.away").rename(folder)
    filled.publish()
    found = steady(store, topic, 4)
    assert (found.status, found.message_count, found.next_offset) == (PullStatus.FOUND, COUNT - 4, COUNT)


@TOPICS
def test_lost_queue_files_are_reported_and_the_cursor_stays(filled: BuiltStore, store: StoreReader, topic: str) -> None:
    for name in ("consumequeue", "batchconsumequeue"):
        shutil.rmtree(filled.root / name)
    found = steady(store, topic, 4)
    assert (found.message_count, found.next_offset) == (0, 4)
    assert [(skip.queue_offset, skip.message_count, skip.reason) for skip in found.skipped] == [
        (4, COUNT - 4, "QUEUE_FILE_MISSING")
    ]
    assert (found.bounds.min_offset, found.bounds.max_offset) == (0, COUNT)


def test_a_log_truncated_by_the_writer_lowers_watermark_and_queue_ends(
    filled: BuiltStore, store: StoreReader, regressions: Regressions
) -> None:
    """The bytes were not synced by an async writer before a power cut; their offsets are reused."""
    place = pulled(store, "orders", 6).parts[0].records.rows["physical_offset"][0]
    begin_term(filled.root, 1, int(place))
    assert store.watermark().physical_offset == place
    assert (bounds(store, "orders").max_offset, bounds(store, "batches").max_offset) == (6, 6)
    filled.publish(int(place) - 10)
    assert store.watermark().physical_offset == place
    assert len(regressions) == 1


def test_a_log_that_ends_before_the_watermark_is_treated_as_replaced(filled: BuiltStore, store: StoreReader) -> None:
    """An operator has replaced the store: nothing of the old one is published."""
    shutil.rmtree(filled.root / "commitlog")
    filled.publish(0)
    assert store.watermark().physical_offset == 0


def test_a_log_that_ends_earlier_is_noticed_while_the_marks_stay_lower(filled: BuiltStore, store: StoreReader) -> None:
    filled.publish(0)
    assert store.watermark().is_held
    shutil.rmtree(filled.root / "commitlog")
    assert store.watermark().physical_offset == 0


def test_an_unchanged_watermark_is_the_same_object_after_a_truncation(filled: BuiltStore, store: StoreReader) -> None:
    """Readers of a queue keep its bounds until the object changes."""
    terms = filled.root / "tidemark" / "writer" / "terms"
    terms.parent.mkdir(parents=True, exist_ok=True)
    terms.write_text(f"1 {filled.end // 2} {machine_boot_id()}\n")
    cut = store.watermark()
    assert (cut.cuts, cut.physical_offset) == (1, filled.end // 2)
    assert store.watermark() is cut
    filled.marks.adopt_term(0, 1, end_offset=filled.end // 2)
    filled.publish()
    assert store.watermark().physical_offset == filled.end
