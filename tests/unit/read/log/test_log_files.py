"""The log's files: the search for blank ends from the file's end, and for the written end by record heads."""

from __future__ import annotations

from pathlib import Path

from tests.builders import STORE_MS, blank_bytes, record_bytes, row_of_records, write_log
from tidemark.read.file_run import FileRun
from tidemark.read.log.log_files import LogFiles, find_blank, written_end

FILE_SIZE = 4096


def written(folder: Path, *bodies: bytes) -> tuple[FileRun, list[int]]:
    """Write a log of these bodies; return the end of each record."""
    placed = write_log(folder, FILE_SIZE, [{"body": body} for body in bodies])
    return FileRun(folder), [one.physical_offset + len(one.data) for one in placed]


def test_a_full_file_has_its_blank_position_and_first_store_time(tmp_path: Path) -> None:
    """The last file is not full."""
    log, ends = written(tmp_path, b"x" * 1500, b"x" * 1500, b"x" * 1500)
    first, second = LogFiles(log).page(from_offset=0, limit=10, committed_offset=ends[-1])
    assert (first.start, first.blank_at, first.first_store_ms) == (0, ends[1], STORE_MS)
    assert (second.start, second.blank_at) == (FILE_SIZE, None)


def test_a_blank_record_inside_a_body_does_not_end_the_file(tmp_path: Path) -> None:
    """The body may even hold one that is right for its position: the last one counts."""
    head = len(record_bytes(body=b"")) - len(b"TopicTest") - 3
    fake = blank_bytes(FILE_SIZE - head)
    log, ends = written(tmp_path, fake + b"x" * 1000, b"x" * 2500, b"x" * 1500)
    assert log.read(head, 8) == fake
    assert find_blank(log, 0) == ends[1]


def test_a_long_blank_end_is_found(tmp_path: Path) -> None:
    """It is longer than the first window."""
    size = 1 << 20
    placed = write_log(tmp_path, size, [{"body": b"x" * 100_000}, {"body": b"x" * (size - 1000)}])
    assert find_blank(FileRun(tmp_path), 0) == len(placed[0].data)


def test_a_file_without_a_blank_record_has_no_blank_position(tmp_path: Path) -> None:
    tmp_path.joinpath(f"{0:020d}").write_bytes(bytes(FILE_SIZE))
    assert find_blank(FileRun(tmp_path), 0) is None


def test_a_page_begins_with_the_file_that_holds_the_offset(tmp_path: Path) -> None:
    log, ends = written(tmp_path, *[b"x" * 3000] * 4)
    page = LogFiles(log).page(from_offset=FILE_SIZE + 17, limit=2, committed_offset=ends[-1])
    assert [file.start for file in page] == [FILE_SIZE, 2 * FILE_SIZE]


def test_the_written_end_is_the_end_of_the_last_record(tmp_path: Path) -> None:
    """The search passes a blank end into the next file."""
    log, ends = written(tmp_path, b"x" * 1500, b"x" * 1500, b"x" * 1500)
    assert written_end(log, 0) == ends[-1]
    assert written_end(log, 0, most=1) == ends[0]


def test_stale_bytes_do_not_count_as_written(tmp_path: Path) -> None:
    """A record whose PHYSICALOFFSET is another position is a leftover."""
    row = row_of_records([{}, {}])
    stale = record_bytes(physical_offset=7)
    tmp_path.joinpath(f"{0:020d}").write_bytes((row + stale).ljust(FILE_SIZE, b"\0"))
    assert written_end(FileRun(tmp_path), 0) == len(row)


def test_the_written_end_of_an_empty_log_is_its_start(tmp_path: Path) -> None:
    assert written_end(FileRun(tmp_path), 0) == 0
