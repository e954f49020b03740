"""Delays and growth rates from the store times of the log."""

from __future__ import annotations

from tests.built_store import BuiltStore
from tidemark.read.log.log_times import Growth, first_invisible_time, growth
from tidemark.read.store_reader import StoreReader
from tidemark.read.watermark import Watermark

HOUR_MS, MINUTE_MS = 3_600_000, 60_000
NOON_MS = 1_700_000_000_000


def watermark_at(physical_offset: int, committed: int) -> Watermark:
    return Watermark(1, physical_offset, 0, committed)


def fill_files(built: BuiltStore, *begins_ms: int) -> None:
    """Write one log file for each start time."""
    body = b"x" * (built.log_file_size // 2)  # two do not fit into one file
    for begin_ms in begins_ms:
        built.append("orders", body, at_ms=begin_ms)


def grown(built: BuiltStore, now_ms: int) -> Growth | None:
    log = StoreReader(built.root).log
    return growth(log, built.end, now_ms=now_ms, window_ms=HOUR_MS, least_ms=MINUTE_MS)


def test_the_lag_starts_at_the_first_invisible_record(built: BuiltStore) -> None:
    """The delay starts at that record's store time."""
    first = built.append("orders", at_ms=NOON_MS)
    second = built.append("orders", at_ms=NOON_MS + 5)
    log = StoreReader(built.root).log
    assert first_invisible_time(log, watermark_at(0, built.end)) == NOON_MS
    assert first_invisible_time(log, watermark_at(second.physical_offset, built.end)) == NOON_MS + 5
    assert first_invisible_time(log, watermark_at(built.end, built.end)) is None
    assert (
        first_invisible_time(log, watermark_at(first.physical_offset + 1, built.end)) is None
    )  # no record starts there


def test_the_lag_skips_the_blank_record_of_a_file(built: BuiltStore) -> None:
    """A blank record has no time; the next file's first record has one."""
    fill_files(built, NOON_MS, NOON_MS + 7)
    log = StoreReader(built.root).log
    blank_at = next(
        place for place in range(0, built.log_file_size, 1) if log.read(place, 8)[4:] == b"\xcb\xd4\x31\x94"
    )
    assert first_invisible_time(log, watermark_at(blank_at, built.end)) == NOON_MS + 7
    assert first_invisible_time(log, watermark_at(blank_at, built.log_file_size)) is None


def test_growth_is_measured_from_the_newest_file_that_is_old_enough(built: BuiltStore) -> None:
    """Earlier growth is not representative."""
    fill_files(built, NOON_MS, NOON_MS + HOUR_MS, NOON_MS + 3 * HOUR_MS)
    now_ms = NOON_MS + 3 * HOUR_MS + MINUTE_MS
    expected = Growth(built.end - built.log_file_size, NOON_MS + HOUR_MS, now_ms)
    assert grown(built, now_ms) == expected
    assert expected.bytes_per_s == expected.size_bytes / (2 * 3600 + 60)


def test_growth_of_a_young_log_is_measured_from_its_start(built: BuiltStore) -> None:
    """The log must not be too young for an estimate."""
    fill_files(built, NOON_MS, NOON_MS + 2)
    assert grown(built, NOON_MS + MINUTE_MS) == Growth(built.end, NOON_MS, NOON_MS + MINUTE_MS)
    assert grown(built, NOON_MS + MINUTE_MS - 1) is None


def test_growth_without_valid_times_is_unknown(built: BuiltStore) -> None:
    """The log is empty, the clock was set back, or the first record is invalid."""
    assert grown(built, NOON_MS) is None
    fill_files(built, NOON_MS)
    assert grown(built, NOON_MS - HOUR_MS) is None
    built.write_log(4, b"\0\0\0\0")
    assert grown(built, NOON_MS + HOUR_MS) is None
