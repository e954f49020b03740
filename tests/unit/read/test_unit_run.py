"""Visible units of a queue."""

from __future__ import annotations

import itertools
import shutil
import struct
from collections.abc import Callable

import pytest

from tests.built_store import PRE_BLANK, BuiltStore, Written
from tidemark.read.cached import NotCachedError, pread
from tidemark.read.store_reader import StoreReader
from tidemark.read.unit_run import UnitArray, VisibleUnits
from tidemark.read.watermark import Watermark
from tidemark.store.paths import StorePaths


def at(physical_offset: int, term: int = 0) -> Watermark:
    return Watermark(term, physical_offset, 0, physical_offset)


def end_of(record: Written) -> Watermark:
    return at(record.physical_offset + record.size)


def visible(reader: StoreReader, watermark: Watermark, topic: str = "orders") -> VisibleUnits:
    return reader.bounds(reader.queue(topic, 0), watermark).units


@pytest.mark.parametrize("topic", ["orders", "batches"])
@pytest.mark.parametrize("fresh", [True, False], ids=["cold", "grown"])
def test_a_unit_is_visible_once_its_record_ends_below_the_watermark(built: BuiltStore, topic: str, fresh: bool) -> None:
    """Every watermark around each record's end is tried, over three queue files, with a cold and a growing run."""
    written = [built.append(topic) for _ in range(120)]
    reader = StoreReader(built.root)
    for number, record in enumerate(written):
        end = record.physical_offset + record.size
        for watermark, expected in ((end - 1, number), (end, number + 1)):
            if fresh:
                reader = StoreReader(built.root)
            assert visible(reader, at(watermark), topic) == (0, expected)


def test_new_queue_files_are_noticed(built: BuiltStore) -> None:
    """A reader that is older than the queue's first file follows the queue over the edges of files."""
    reader = StoreReader(built.root)
    assert visible(reader, at(0)) == (0, 0)
    for number in range(120):
        built.append("orders")
        assert visible(reader, at(built.end)) == (0, number + 1)


def test_a_pre_blank_head_is_skipped(built: BuiltStore) -> None:
    """The queue's first unit is number 70: its file begins with 20 pre-blank units (docs/format.md §4)."""
    built.next["orders", 0] = 70
    built.write_units("orders", 0, 50, PRE_BLANK * 20)
    reader = StoreReader(built.root)
    assert visible(reader, at(10)) == (50, 50)
    built.append("orders")
    built.append("orders")
    assert visible(reader, at(built.end)) == (70, 72)
    assert visible(StoreReader(built.root), at(built.end)) == (70, 72)


def test_a_first_file_above_0_is_found_by_an_existing_reader(built: BuiltStore) -> None:
    """A topic that was deleted and created again begins at its next offset: its first file is not number 0."""
    other = built.append("orders", queue_id=1)
    reader = StoreReader(built.root)
    assert visible(reader, at(other.size)) == (0, 0)
    built.next["orders", 0] = 70
    built.write_units("orders", 0, 50, PRE_BLANK * 20)
    for number in range(70, 75):
        built.append("orders")
        assert visible(reader, at(built.end)) == (70, number + 1)


def test_later_files_that_replace_empty_files_are_found(built: BuiltStore) -> None:
    """The known end was the start of a file without visible units."""
    other = built.append("orders", queue_id=1)
    built.next["orders", 0] = 70
    built.write_units("orders", 0, 50, PRE_BLANK * 20)
    reader = StoreReader(built.root)
    assert visible(reader, at(other.size)) == (50, 50)
    shutil.rmtree(StorePaths(built.root).queue("orders", 0, batch=False))
    built.next["orders", 0] = 130
    built.write_units("orders", 0, 100, PRE_BLANK * 30)
    built.append("orders")
    assert visible(reader, at(built.end)) == (130, 131)


@pytest.mark.parametrize("hole", [1, 30, 200])
def test_a_hole_of_pre_blank_units_is_skipped(built: BuiltStore, hole: int) -> None:
    """Units after a hole are found, cold and growing; the hole alone makes nothing visible."""
    first = built.append("orders")
    for number in range(1, 1 + hole):
        built.write_units("orders", 0, number, PRE_BLANK)
    built.next["orders", 0] = 1 + hole
    reader = StoreReader(built.root)
    assert visible(reader, at(first.size)) == (0, 1)
    built.append("orders")
    assert visible(reader, at(built.end)) == (0, 2 + hole)
    assert visible(StoreReader(built.root), at(built.end)) == (0, 2 + hole)


def test_stale_units_that_do_not_ascend_end_the_queue(built: BuiltStore) -> None:
    """Old bytes past the end may point below the watermark; only they do not ascend."""
    for _ in range(5):
        last = built.append("orders")
    reader = StoreReader(built.root)
    assert visible(reader, at(built.end)) == (0, 5)
    built.append("orders", queue_id=1)
    built.write_units("orders", 0, 5, struct.pack(">qiq", 0, last.size, 0))
    assert visible(reader, at(built.end)) == (0, 5)


def test_a_new_term_may_remove_units(built: BuiltStore) -> None:
    """Units that were cut and rebuilt in another term are read again, even if the watermark is higher by then."""
    records = [built.append("orders") for _ in range(4)]
    reader = StoreReader(built.root)
    assert visible(reader, at(built.end)) == (0, 4)
    built.write_units("orders", 0, 2, bytes(40))  # records 2 and 3 were cut: other queues use their positions
    assert visible(reader, at(records[3].physical_offset + 10_000, term=1)) == (0, 2)


def test_units_of_deleted_records_are_below_the_minimum(built: BuiltStore) -> None:
    """After retention, the minimum is the first unit at or above the log's minimum (docs/format.md §4)."""
    body = bytes(3000)
    written = [built.append("orders", body) for _ in range(100)]
    reader = StoreReader(built.root)
    assert visible(reader, at(built.end)) == (0, 100)
    files = sorted((built.root / "commitlog").iterdir())
    for gone, kept in itertools.pairwise(files):
        gone.unlink()
        first = next(i for i, one in enumerate(written) if one.physical_offset >= int(kept.name))
        assert visible(reader, at(built.end)) == (first, 100)
        assert visible(StoreReader(built.root), at(built.end)) == (first, 100)


def test_a_queue_without_live_records_keeps_its_maximum(built: BuiltStore) -> None:
    """All of its records were deleted: minimum equals maximum, and the numbering continues."""
    for _ in range(3):
        built.append("orders")
    while built.end < 2 * built.log_file_size:
        built.append("orders", bytes(9000), queue_id=1)
    (built.root / "commitlog" / f"{0:020d}").unlink()
    reader = StoreReader(built.root)
    assert visible(reader, at(built.end)) == (3, 3)
    built.append("orders")
    assert visible(reader, at(built.end)) == (3, 4)


@pytest.mark.parametrize("topic", ["orders", "batches"])
def test_the_minimum_is_found_after_a_missing_queue_file(built: BuiltStore, topic: str) -> None:
    """A lost file in the middle hides no unit of the others."""
    body = bytes(3000)
    written = [built.append(topic, body) for _ in range(200)]
    folder = built.root / ("consumequeue" if topic == "orders" else "batchconsumequeue") / topic / "0"
    sorted(folder.iterdir())[1].unlink()  # units 50 to 99
    for path in sorted((built.root / "commitlog").iterdir())[:-1]:
        path.unlink()
        log_min = int(path.name) + built.log_file_size
        first = next(i for i, one in enumerate(written) if one.physical_offset >= log_min)
        assert visible(StoreReader(built.root), at(built.end), topic) == (100 if 50 <= first < 100 else first, 200)


@pytest.mark.parametrize("topic", ["orders", "batches"])
def test_units_that_have_just_become_visible_are_not_read_again(
    built: BuiltStore, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A waiting pull asks for exactly these."""
    for _ in range(3):
        built.append(topic)
    reader = StoreReader(built.root)
    run = reader.queue(topic, 0).run
    visible(reader, at(built.end), topic)
    for _ in range(2):
        built.append(topic)
    assert visible(reader, at(built.end), topic).end == 5
    stored, reads = run.read(0, 6), list[int]()

    def read(number: int, count: int) -> UnitArray:
        reads.append(number)
        return stored[number : number + count]

    monkeypatch.setattr(run, "read", read)
    for number, count in ((3, 2), (3, 1), (4, 1)):
        assert run.read_visible(number, count).tobytes() == stored[number : number + count].tobytes()
    assert reads == []
    for number, count in ((2, 3), (4, 2), (0, 1)):
        assert run.read_visible(number, count).tobytes() == stored[number : number + count].tobytes()
    assert reads == [2, 4, 0]
    run.forget()
    run.read_visible(3, 2)
    assert reads[-1] == 3, "the files may have changed"


@pytest.mark.parametrize("topic", ["orders", "batches"])
def test_a_refused_search_changes_nothing(built: BuiltStore, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read of a search is refused once, and the next request comes with the watermark before it.

    Of requests on several threads, one may have an older watermark than the one before it.
    """
    written = [built.append(topic) for _ in range(120)]
    for refused in range(100):
        reader, refusals, before = StoreReader(built.root), 0, 80
        assert visible(reader, end_of(written[before - 1]), topic) == (0, before)
        for count in (120, 30, 110):
            with monkeypatch.context() as patch:
                patch.setattr("tidemark.read.file_run.pread", _refusing(refused))
                try:
                    visible(reader, end_of(written[count - 1]), topic)
                except NotCachedError:
                    refusals += 1
            if refusals:
                assert visible(reader, end_of(written[before - 1]), topic) == (0, before)
            assert visible(reader, end_of(written[count - 1]), topic) == (0, count)
            before = count
        if not refusals:
            break
    assert refused > 1
    assert not refusals


def _refusing(refused: int) -> Callable[[int, int, int], bytes]:
    """Return a `pread` whose call number *refused* would wait for the disk."""
    calls = itertools.count()

    def read(descriptor: int, length: int, offset: int) -> bytes:
        if next(calls) == refused:
            raise NotCachedError
        return pread(descriptor, length, offset)

    return read
