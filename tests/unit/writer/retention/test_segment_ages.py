"""The newest store time of a sealed file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.writer.retention.segment_ages import FileAges
from tests.builders import STORE_MS, write_log
from tidemark.store.mapped_file_queue import MappedFileQueue

SIZE = 4096
NOW_MS = STORE_MS + 10_000_000


def log_of(folder: Path, *times_ms: int, body: bytes = bytes(450)) -> MappedFileQueue:
    """Write records with these store times; a file of 4 KiB holds seven."""
    write_log(folder, SIZE, ({"store_timestamp": time, "body": body} for time in times_ms))
    return MappedFileQueue(folder, SIZE)


def newest(ages: FileAges, log: MappedFileQueue, start: int = 0, *, oldest_kept_ms: int = NOW_MS) -> int | None:
    return ages.newest_ms(log, start, oldest_kept_ms=oldest_kept_ms, now_ms=NOW_MS)


def test_the_age_is_the_greatest_store_time_of_the_file(tmp_path: Path) -> None:
    """A broker's clock may have gone back; the modification times of the file do not matter."""
    log = log_of(tmp_path, *[STORE_MS + i for i in (1, 7, 3, 2, 2, 2, 2)], STORE_MS + 99)
    for path in tmp_path.iterdir():
        os.utime(path, (1, 1))
    assert newest(FileAges(), log) == STORE_MS + 7
    assert newest(FileAges(), log, SIZE) == STORE_MS + 99


def test_a_file_walk_stops_at_a_new_record_and_continues_there(tmp_path: Path) -> None:
    """The walk stops at it, and continues from there: each part of a file is read once."""
    rests: list[None] = []
    ages = FileAges(lambda: rests.append(None))
    log = log_of(tmp_path, *[STORE_MS + i for i in range(7)])
    assert newest(ages, log, oldest_kept_ms=STORE_MS + 6) == STORE_MS + 6
    walked = len(rests)
    for _ in range(3):
        assert newest(ages, log, oldest_kept_ms=STORE_MS + 1) == STORE_MS + 6
    assert len(rests) == walked
    assert newest(ages, log) == newest(ages, log) == STORE_MS + 6
    (tmp_path / f"{0:020d}").unlink()  # it is not read again
    assert newest(ages, log) == STORE_MS + 6


def test_an_unreadable_file_has_no_age(tmp_path: Path) -> None:
    log = log_of(tmp_path, *[STORE_MS] * 9)
    (tmp_path / f"{0:020d}").write_bytes(os.urandom(64) * (SIZE // 64))
    assert newest(FileAges(), log) is None
    assert newest(FileAges(), log, SIZE) == STORE_MS


def test_a_damaged_record_does_not_affect_the_age(tmp_path: Path) -> None:
    """The other records determine the age."""
    log = log_of(tmp_path, *[STORE_MS + i for i in range(7)])
    with (tmp_path / f"{0:020d}").open("r+b") as file:
        file.write(b"\xff" * 300)
    assert newest(FileAges(), log) == STORE_MS + 6


def test_records_of_a_fast_clock_keep_their_file(tmp_path: Path) -> None:
    """High times up to a file's end are no damaged fields: the clock was set back after them."""
    ahead_ms = NOW_MS + 72 * 3_600_000
    log = log_of(tmp_path, *[STORE_MS] * 4, *[ahead_ms] * 3, *[ahead_ms] * 7, STORE_MS)
    ages = FileAges()
    assert newest(ages, log) == newest(ages, log) == ahead_ms
    assert newest(ages, log, SIZE) == ahead_ms


@pytest.mark.parametrize("wrong_ms", [1 << 62, NOW_MS + 25 * 3_600_000])
def test_an_impossible_store_time_is_ignored(tmp_path: Path, wrong_ms: int) -> None:
    """No checksum covers a record's store time; one flipped bit would stop retention."""
    log = log_of(tmp_path, STORE_MS, wrong_ms, STORE_MS + 1, *[STORE_MS] * 5)
    assert newest(FileAges(), log) == STORE_MS + 1
