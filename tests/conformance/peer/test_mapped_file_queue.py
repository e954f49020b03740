"""RocketMQ's MappedFileQueueTest and MappedFileTest: a series of files as one address space."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from services.writer.log.recovery import zero_after
from services.writer.log.segments import Segments
from tests.unit.store.recording_storage import RecordingStorage
from tidemark.format.dispatch_request import DISPATCH_REQUEST
from tidemark.index.build import ConsumeQueueBuilder
from tidemark.index.expire import expire_queue
from tidemark.store.mapped_file_queue import MappedFileQueue, file_name
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.conformance


def appended(folder: Path, piece: bytes, count: int, file_size: int = 1024) -> MappedFileQueue:
    """Append *count* contiguous pieces."""
    files = MappedFileQueue(folder, file_size, DiskStorage())
    for number in range(count):
        files.write(number * len(piece), piece)
    return files


def test_mfq1_appends_roll_from_file_to_file(tmp_path: Path) -> None:
    """1024 times 16 bytes in files of 1024 fill 16 files."""
    files = appended(tmp_path, b"0123456789abcdef", 1024)
    assert files.starts == list(range(0, 16_384, 1024))
    assert all(path.read_bytes() == b"0123456789abcdef" * 64 for path in tmp_path.iterdir())
    files.close()


def test_mfq2_an_offset_is_in_the_file_that_covers_it(tmp_path: Path) -> None:
    """4096 bytes are in four files; from 4096 on there is none."""
    files = appended(tmp_path, b"abcd", 1024)
    assert (files.min_offset, files.capacity_end) == (0, 4096)
    for offset, start in ((0, 0), (100, 0), (1024, 1024), (1124, 1024), (2048, 2048), (2148, 2048)):
        assert files.covers(offset)
        assert files.file_start(offset) == start
        assert files.read(offset, 4) == b"abcd"
    for offset in (4096, 4196):
        assert not files.covers(offset)
        assert files.read(offset, 4) == b""
    files.close()


def test_mfq3_a_queue_may_begin_above_0(tmp_path: Path) -> None:
    """The first file is 1024: it contains 1025, but no file contains 0 and 123; the queue's minimum is 1024."""
    files = MappedFileQueue(tmp_path, 1024, DiskStorage())
    files.write(1024, b"x")
    assert [files.covers(offset) for offset in (1025, 0, 123)] == [True, False, False]
    assert files.min_offset == 1024
    files.close()


def test_mfq4_a_flush_makes_one_file_durable(tmp_path: Path) -> None:
    """There is one fdatasync a file, in the requested order."""
    storage = RecordingStorage()
    files = MappedFileQueue(tmp_path, 1024, storage)
    for number in range(1024):
        files.write(16 * number, b"0123456789abcdef")
    storage.steps.clear()
    for start in files.starts:
        files.flush(start)
    assert storage.steps == ["fdatasync"] * 16
    files.close()


def test_mfq5_files_whose_units_all_point_below_an_offset_expire(tmp_path: Path) -> None:
    """2048 units in files of 5120 bytes: all but the last are deleted, under a reader that keeps its open files."""
    requests = np.zeros(2048, DISPATCH_REQUEST)
    requests["physical_offset"] = requests["queue_offset"] = requests["base_offset"] = np.arange(2048)
    requests["message_size"] = requests["batch_size"] = 1
    builder = ConsumeQueueBuilder(MappedFileQueue(tmp_path, 5120, DiskStorage()), mark=0)
    builder.build(requests)
    files = builder.files
    reader = MappedFileQueue(tmp_path, 5120)
    first = reader.read(0, 5120)
    assert expire_queue(files, 0, batch=False) == []
    assert expire_queue(files, 20_480, batch=False) == list(range(0, 35_840, 5120))
    assert files.min_offset == 35_840
    assert reader.read(0, 5120) == first, "it has the file open"
    reader.refresh()
    assert reader.starts == [35_840]
    for one in (files, reader):
        one.close()


def test_mfq8_truncation_to_an_offset_drops_later_files(tmp_path: Path) -> None:
    """64-byte files, eight times 16 bytes: two files; back to 0: one empty file."""
    files = appended(tmp_path, b"0123456789abcdef", 8, file_size=64)
    assert len(files.starts) == 2
    zero_after(Segments(files), 0)
    assert os.listdir(tmp_path) == [file_name(0)]
    assert (tmp_path / file_name(0)).read_bytes() == bytes(64)
    files.close()


def test_mf1_appended_bytes_are_readable_until_the_file_is_deleted(tmp_path: Path) -> None:
    """32 bytes in a file of 64 KiB: read bytes stay valid, a deleted file returns nothing."""
    text = b"This is a message of 32 bytes..."
    assert len(text) == 32
    files = appended(tmp_path, text, 1, file_size=65_536)
    held = files.read(0, 32)
    assert held == text
    files.delete_file(0)
    assert (held, files.read(0, 32), os.listdir(tmp_path)) == (text, b"", [])
    files.close()
