"""Segments: preallocated files, and zeroing of failed writes."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from services.writer.log.segments import Segments
from tidemark.errors import DiskFullError, UnavailableError
from tidemark.store.mapped_file_queue import MappedFileQueue, file_name
from tidemark.store.storage import DiskStorage

FILE_SIZE = 1 << 18


class NoNewBlocks(DiskStorage):
    """A full disk: writes to allocated blocks succeed, writes into holes fail."""

    def __init__(self) -> None:
        self.full = False

    def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
        if self.full:
            there = os.pread(descriptor, len(data), at)
            for sector in range(at // 512, -(-(at + len(data)) // 512)):
                start, stop = max(sector * 512 - at, 0), (sector + 1) * 512 - at
                if not any(there[start:stop]):
                    raise DiskFullError("the disk is full: injected")
        super().pwrite(descriptor, data, at)


@pytest.fixture
def segments(tmp_path: Path) -> Segments:
    return Segments(MappedFileQueue(tmp_path / "commitlog", FILE_SIZE, NoNewBlocks()))


def test_files_are_created_with_their_full_size(segments: Segments) -> None:
    """A request for an existing file does nothing."""
    segments.ensure(0)
    segments.ensure(FILE_SIZE)
    segments.ensure(0)
    assert segments.log.starts == [0, FILE_SIZE]
    assert (segments.log.folder / file_name(FILE_SIZE)).stat().st_size == FILE_SIZE


def test_unused_files_are_dropped(segments: Segments) -> None:
    """The file that contains the log's end, or begins there, stays."""
    for start in (0, FILE_SIZE, 2 * FILE_SIZE):
        segments.ensure(start)
    segments.drop_unused(FILE_SIZE)
    assert segments.log.starts == [0, FILE_SIZE]
    segments.drop_unused(FILE_SIZE - 1)
    assert segments.log.starts == [0]


def test_an_unexpected_file_is_not_overwritten(segments: Segments) -> None:
    """It is reported, and neither overwritten nor deleted."""
    segments.ensure(0)
    foreign = segments.log.folder / file_name(FILE_SIZE)
    foreign.write_bytes(b"what is this")
    with pytest.raises(UnavailableError):
        segments.ensure(FILE_SIZE)
    assert foreign.read_bytes() == b"what is this"


def test_wipe_zeroes_exactly_the_range_on_a_full_disk(tmp_path: Path, segments: Segments) -> None:
    """Bytes before and after it stay; no sector that was already zero is written."""
    source = random.Random(3)
    for _ in range(20):
        segments.ensure(0)
        content = bytearray(FILE_SIZE)
        for _ in range(source.randrange(1, 5)):
            at = source.randrange(FILE_SIZE - 5000)
            content[at : at + 5000] = source.randbytes(5000)
        path = segments.log.folder / file_name(0)
        path.write_bytes(content)
        start = source.randrange(FILE_SIZE)
        end = source.randrange(start, FILE_SIZE + 1)
        storage = segments.log._storage
        assert isinstance(storage, NoNewBlocks)
        storage.full = True
        segments.wipe(start, end)
        storage.full = False
        assert path.read_bytes() == content[:start] + bytes(end - start) + content[end:]


def test_next_data_skips_holes_in_the_file(segments: Segments) -> None:
    """From a hole the position moves at most to the next data, or to the file's end if there is none."""
    segments.ensure(0)
    assert segments.next_data(100) in (100, FILE_SIZE)
    segments.log.write(200_000, b"x")
    assert segments.next_data(100) <= 200_000
    assert segments.next_data(200_000) == 200_000
