"""Pages of the log are made ahead where making them is dear, and only there."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import time
from pathlib import Path

import numpy as np
import pytest

from services.writer.pages_ahead import AHEAD_BYTES, LEAST_BYTES, PagesAhead
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.storage import DiskStorage

FILE_BYTES = 24 << 20
DEAR_S, CHEAP_S = 1.0, 0.0


class _Log(MappedFileQueue):
    """Notes what it was asked to read ahead; *cpu_s* is what each call costs."""

    asked: list[tuple[int, int]]
    cpu_s = 0.0

    def read_ahead(self, offset: int, length: int) -> None:
        end = time.thread_time() + self.cpu_s
        while time.thread_time() < end:
            pass
        super().read_ahead(offset, length)
        self.asked.append((offset, length))


@pytest.fixture
def log(tmp_path: Path) -> _Log:
    log = _Log(tmp_path, FILE_BYTES, DiskStorage())
    log.asked = []
    log.create_file(0)
    return log


def _run(log: _Log, *writes: tuple[int, int, float]) -> list[tuple[int, int]]:
    """Stretches that were asked for, after each of *writes* was told and dealt with."""
    pages = PagesAhead(log)
    pages.start()
    for end, size, cpu_s in writes:
        before = len(log.asked)
        pages.wrote(end, size, cpu_s)
        deadline = time.monotonic() + 5
        while cpu_s and sum(length for _, length in log.asked[before:]) < AHEAD_BYTES and time.monotonic() < deadline:
            time.sleep(0.001)
    pages.close()
    return log.asked


def test_a_dear_write_has_the_next_pages_made(log: _Log) -> None:
    asked = _run(log, (1000, LEAST_BYTES, DEAR_S))
    assert asked[0][0] == 1000
    assert all(offset + length == following for (offset, length), (following, _) in itertools.pairwise(asked))
    assert sum(length for _, length in asked) == AHEAD_BYTES


def test_a_cheap_write_does_not(log: _Log) -> None:
    assert not _run(log, (1 << 20, 1 << 20, CHEAP_S))


def test_a_little_write_tells_nothing(log: _Log) -> None:
    """Its time is the call's."""
    pages = PagesAhead(log)
    pages.start()
    pages.wrote(1000, LEAST_BYTES - 1, DEAR_S)
    pages.close()
    assert not log.asked


def test_dear_pages_are_made_before_they_run_out_though_writes_are_cheap_now(log: _Log) -> None:
    log.cpu_s = 0.002  # of 1 MiB: dear
    pages = PagesAhead(log)
    pages.start()
    pages.wrote(0, LEAST_BYTES, DEAR_S)
    _wait_for(log, AHEAD_BYTES)
    pages.wrote(AHEAD_BYTES // 4, LEAST_BYTES, CHEAP_S)
    assert sum(length for _, length in log.asked) == AHEAD_BYTES  # more than half of it is left
    pages.wrote(AHEAD_BYTES // 2 + 1, LEAST_BYTES, CHEAP_S)
    _wait_for(log, AHEAD_BYTES * 3 // 2)
    pages.close()
    assert log.asked[AHEAD_BYTES >> 20][0] == AHEAD_BYTES  # nothing twice


def _wait_for(log: _Log, size: int) -> None:
    deadline = time.monotonic() + 5
    while sum(length for _, length in log.asked) < size:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    time.sleep(0.01)  # until the thread has seen what it cost


def test_pages_of_the_next_file_too_and_none_of_a_file_that_is_not_there(log: _Log) -> None:
    log.create_file(FILE_BYTES)
    _run(log, (FILE_BYTES - (1 << 20), LEAST_BYTES, DEAR_S), (2 * FILE_BYTES - 1, LEAST_BYTES, DEAR_S))
    assert log.starts == [0, FILE_BYTES]


def test_pages_are_in_memory_and_the_file_is_as_empty_as_before(log: _Log) -> None:
    descriptor = log.opened(0).descriptor
    blocks = os.stat(descriptor).st_blocks
    os.pread(descriptor, 1, FILE_BYTES - 1)
    if not (before := _pages_in_memory(log)):
        pytest.skip("this file system keeps no pages of holes")
    assert before < AHEAD_BYTES // mmap.PAGESIZE
    _run(log, (0, LEAST_BYTES, DEAR_S))
    deadline = time.monotonic() + 5
    while _pages_in_memory(log) < AHEAD_BYTES // mmap.PAGESIZE and time.monotonic() < deadline:
        time.sleep(0.001)
    assert _pages_in_memory(log) >= AHEAD_BYTES // mmap.PAGESIZE
    assert os.stat(descriptor).st_blocks == blocks


def _pages_in_memory(log: _Log) -> int:
    """Of the first file, without touching it."""
    libc = ctypes.CDLL(None, use_errno=True)
    found = np.zeros(FILE_BYTES // mmap.PAGESIZE, np.uint8)
    with mmap.mmap(log.opened(0).descriptor, FILE_BYTES, access=mmap.ACCESS_READ) as mapping:
        view = np.frombuffer(mapping, np.uint8)
        failed = libc.mincore(ctypes.c_void_p(view.ctypes.data), FILE_BYTES, ctypes.c_void_p(found.ctypes.data))
        del view
    assert not failed, os.strerror(ctypes.get_errno())
    return int(np.count_nonzero(found & 1))
