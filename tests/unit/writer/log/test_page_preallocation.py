"""Pages of the log are preallocated only if their allocation is expensive."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from services.writer.log.page_preallocation import AHEAD_BYTES, LEAST_BYTES, PagePreallocation
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.storage import DiskStorage

FILE_BYTES = 24 << 20
DEAR_S, CHEAP_S = 1.0, 0.0


class _Log(MappedFileQueue):
    """Records the preallocated ranges; each call costs *cpu_s* of CPU time, unless it *is_real*."""

    asked: list[tuple[int, int]]
    cpu_s = 0.0
    is_real = False

    def read_ahead(self, offset: int, length: int) -> None:
        end = time.thread_time() + self.cpu_s
        while time.thread_time() < end:
            pass
        if self.is_real:
            super().read_ahead(offset, length)
        self.asked.append((offset, length))


@pytest.fixture
def log(tmp_path: Path) -> _Log:
    log = _Log(tmp_path, FILE_BYTES, DiskStorage())
    log.asked = []
    log.create_file(0)
    return log


@pytest.fixture
def pages(log: _Log) -> Iterator[PagePreallocation]:
    pages = PagePreallocation(log)
    yield pages
    pages.close()


def _write(log: _Log, pages: PagePreallocation, end: int, cpu_s: float, *, until: int) -> None:
    """Append repeatedly until *until* bytes of pages were requested."""
    deadline = time.monotonic() + 5
    while sum(length for _, length in log.asked) < until:
        assert time.monotonic() < deadline
        pages.wrote(end, LEAST_BYTES, cpu_s)
        time.sleep(0.001)
    time.sleep(0.01)  # until the thread has seen the cost


def test_an_expensive_write_preallocates_the_next_pages(log: _Log, pages: PagePreallocation) -> None:
    _write(log, pages, 1000, DEAR_S, until=AHEAD_BYTES)
    assert log.asked[0][0] == 1000
    assert all(offset + length == following for (offset, length), (following, _) in itertools.pairwise(log.asked))
    assert sum(length for _, length in log.asked) == AHEAD_BYTES


@pytest.mark.parametrize(
    ("size", "cpu_s"), [(1 << 20, CHEAP_S), (LEAST_BYTES - 1, DEAR_S)], ids=["cheap", "little: its time is the call's"]
)
def test_other_writes_preallocate_no_pages(log: _Log, pages: PagePreallocation, size: int, cpu_s: float) -> None:
    """The first request belongs to the expensive write after it."""
    pages.wrote(8 << 20, size, cpu_s)
    _write(log, pages, 1000, DEAR_S, until=AHEAD_BYTES)
    assert log.asked[0][0] == 1000


def test_expensive_pages_are_preallocated_before_they_run_out(log: _Log, pages: PagePreallocation) -> None:
    log.cpu_s = 0.002  # expensive for 1 MiB
    _write(log, pages, 0, DEAR_S, until=AHEAD_BYTES)
    pages.wrote(AHEAD_BYTES // 4, LEAST_BYTES, CHEAP_S)
    time.sleep(0.05)
    assert sum(length for _, length in log.asked) == AHEAD_BYTES  # more than half of them is left
    _write(log, pages, AHEAD_BYTES // 2 + 1, CHEAP_S, until=AHEAD_BYTES * 3 // 2)
    assert log.asked[AHEAD_BYTES >> 20][0] == AHEAD_BYTES  # no range is requested twice


def test_cheap_pages_are_not_preallocated_again(log: _Log, pages: PagePreallocation) -> None:
    _write(log, pages, 0, DEAR_S, until=AHEAD_BYTES)
    pages.wrote(AHEAD_BYTES - 1000, LEAST_BYTES, CHEAP_S)
    _write(log, pages, AHEAD_BYTES + 1000, DEAR_S, until=2 * AHEAD_BYTES)
    assert log.asked[AHEAD_BYTES >> 20][0] == AHEAD_BYTES + 1000


def test_pages_are_preallocated_across_existing_files_only(log: _Log, pages: PagePreallocation) -> None:
    log.is_real = True
    log.create_file(FILE_BYTES)
    _write(log, pages, FILE_BYTES - (1 << 20), DEAR_S, until=AHEAD_BYTES)
    _write(log, pages, 2 * FILE_BYTES - 1, DEAR_S, until=2 * AHEAD_BYTES)
    assert log.starts == [0, FILE_BYTES]


def test_preallocated_pages_are_in_memory_and_use_no_disk_blocks(log: _Log, pages: PagePreallocation) -> None:
    log.is_real = True
    descriptor = log.opened(0).descriptor
    blocks = os.stat(descriptor).st_blocks
    os.pread(descriptor, 1, FILE_BYTES - 1)
    if not (before := _pages_in_memory(log)):
        pytest.skip("this file system keeps no pages of holes")
    assert before < AHEAD_BYTES // mmap.PAGESIZE
    pages.wrote(0, LEAST_BYTES, DEAR_S)
    deadline = time.monotonic() + 5
    while _pages_in_memory(log) < AHEAD_BYTES // mmap.PAGESIZE and time.monotonic() < deadline:
        time.sleep(0.001)
    assert _pages_in_memory(log) >= AHEAD_BYTES // mmap.PAGESIZE
    assert os.stat(descriptor).st_blocks == blocks


def _pages_in_memory(log: _Log) -> int:
    """Return the number of pages of the first file that are in memory, without touching it."""
    libc = ctypes.CDLL(None, use_errno=True)
    found = np.zeros(FILE_BYTES // mmap.PAGESIZE, np.uint8)
    with mmap.mmap(log.opened(0).descriptor, FILE_BYTES, access=mmap.ACCESS_READ) as mapping:
        view = np.frombuffer(mapping, np.uint8)
        failed = libc.mincore(ctypes.c_void_p(view.ctypes.data), FILE_BYTES, ctypes.c_void_p(found.ctypes.data))
        del view
    assert not failed, os.strerror(ctypes.get_errno())
    return int(np.count_nonzero(found & 1))
