from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.writer.rpc.committed_bytes import MAX_SLICE_SIZE, LogReader
from tidemark.store.log_folders import LogFolders
from tidemark.store.mapped_file_queue import MappedFileQueue, file_name
from tidemark.store.multi_path_mapped_file_queue import open_log

FILE_SIZE = 2 * MAX_SLICE_SIZE


def write_file(folder: Path, start: int, letter: bytes) -> None:
    """Write a file of the log that is a hole, except for its first and last three bytes."""
    with (folder / file_name(start)).open("wb") as file:
        file.truncate(FILE_SIZE)
        file.write(letter * 3)
        file.seek(FILE_SIZE - 3)
        file.write(letter * 3)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[LogReader]:
    """Return a reader of a log of one file."""
    write_file(tmp_path, 0, b"a")
    made = LogReader(lambda: MappedFileQueue(tmp_path, FILE_SIZE))
    yield made
    made.close()


def read(reader: LogReader, physical_offset: int, end: int) -> bytes:
    return asyncio.run(reader.read(physical_offset, end))


def test_slice_ends_at_the_requested_end(reader: LogReader) -> None:
    assert read(reader, 1, 5) == b"aa\0\0"


def test_slice_ends_at_its_greatest_size(reader: LogReader) -> None:
    assert len(read(reader, 10, FILE_SIZE)) == MAX_SLICE_SIZE


def test_slice_ends_at_the_end_of_its_file(tmp_path: Path, reader: LogReader) -> None:
    write_file(tmp_path, FILE_SIZE, b"b")
    assert read(reader, FILE_SIZE - 2, FILE_SIZE + 2) == b"aa"
    assert read(reader, FILE_SIZE, FILE_SIZE + 2) == b"bb"


def test_file_that_was_created_after_the_last_read_is_found_in_any_folder(tmp_path: Path) -> None:
    folders = LogFolders((tmp_path / "first", tmp_path / "second"))
    for folder in folders.all:
        folder.mkdir()
    write_file(folders.all[0], 0, b"a")
    reader = LogReader(lambda: open_log(folders, FILE_SIZE))
    assert read(reader, FILE_SIZE, FILE_SIZE + 2) == b"", "the log does not have them yet"
    write_file(folders.all[1], FILE_SIZE, b"b")
    assert read(reader, FILE_SIZE, FILE_SIZE + 2) == b"bb"
    reader.close()


def test_deleted_file_is_held_open_until_it_is_let_go(tmp_path: Path, reader: LogReader) -> None:
    """A held file can still be read, and keeps its disk space."""
    write_file(tmp_path, FILE_SIZE, b"b")
    assert read(reader, 0, 2) == b"aa"
    (tmp_path / file_name(0)).unlink()
    assert read(reader, 0, 2) == b"aa"
    reader.close_deleted()
    assert read(reader, 0, 2) == b""
    assert read(reader, FILE_SIZE, FILE_SIZE + 2) == b"bb"


def test_closed_reader_ignores_a_later_deletion(tmp_path: Path, reader: LogReader) -> None:
    """Retention may delete a last file while the writer stops."""
    reader.close()
    reader.close_deleted()
