"""Segments: the CommitLog's files as the writer makes and unmakes them.

Full-size from birth, the next one prepared ahead.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Iterator

import numpy as np

from tidemark.errors import DiskFailedError, DiskFullError, UnavailableError
from tidemark.store.mapped_file_queue import MappedFileQueue

_PIECE_SIZE = 64 << 10
_SECTOR_SIZE = 512
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Segments:
    """The writer's files. `ensure` may be called by two threads: the appender, and the keeper ahead of it."""

    def __init__(self, log: MappedFileQueue) -> None:
        self.log = log
        self._creating = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes of one file."""
        return self.log.file_size

    def end_of_file(self, offset: int) -> int:
        """Where the file that covers *offset* ends."""
        return self.log.file_start(offset) + self.log.file_size

    def ensure(self, start: int) -> None:
        """Have the file that starts at *start*. DiskFullError or UnavailableError: it could not be made; try again."""
        with self._creating:
            if self.log.covers(start):
                return
            try:
                self.log.create_file(start)
            except FileExistsError as error:  # not ours: not to be deleted either
                raise UnavailableError(f"a file that nobody expected: {error.filename}", path=error.filename) from error
            except OSError as error:
                with contextlib.suppress(OSError):  # what was begun must not lie there: a broker would not load it
                    self.log.delete_file(start)
                raise as_unavailable(error) from error

    def drop_unused(self, position: int) -> None:
        """Delete files prepared behind *position*: a clean stop leaves none."""
        with self._creating:
            for start in [start for start in self.log.starts if start > position]:
                self.log.delete_file(start)

    def is_zero(self, offset: int, length: int) -> bool:
        """Whether these bytes of one file are zero."""
        data = self.log.read(offset, length)
        return data.count(0) == len(data)

    def wipe(self, offset: int, end: int) -> None:
        """Make [offset, end) zero again, durably: no failed write may look like a record later.

        Only sectors that are not zero are written: those have their place already, so it works on a full disk.
        """
        touched = set()
        while offset < end:
            length = min(end, self.end_of_file(offset), offset + _PIECE_SIZE) - offset
            if self.log.covers(offset):
                for start, stop in _dirty_sectors(offset, self.log.read(offset, length)):
                    self.log.write(start, bytes(stop - start))
                    touched.add(self.log.file_start(start))
            offset += length
        for start in sorted(touched):
            self.log.flush(start)

    def next_data(self, offset: int) -> int:
        """First byte at or behind *offset*, in its file, that may be other than zero; the file's end when none is."""
        start = self.log.file_start(offset)
        try:
            file = self.log.opened(start)
            return start + os.lseek(file.descriptor, offset - start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole from here on
                return start + self.log.file_size
            return offset  # no SEEK_DATA here: everything may be data


def _dirty_sectors(offset: int, data: bytes) -> Iterator[tuple[int, int]]:
    """Stretches of whole sectors, within *data* at *offset*, that hold other bytes than zero."""
    sectors = np.unique((np.flatnonzero(np.frombuffer(data, np.uint8)) + offset) // _SECTOR_SIZE)
    for run in np.split(sectors, np.flatnonzero(np.diff(sectors) > 1) + 1):
        if run.size:
            start, stop = int(run[0]) * _SECTOR_SIZE, (int(run[-1]) + 1) * _SECTOR_SIZE
            yield max(start, offset), min(stop, offset + len(data))


def as_unavailable(error: OSError) -> UnavailableError:
    """What a failed write is to the caller: the disk is full, or it does not take it."""
    if error.errno in _FULL:
        return DiskFullError(f"the disk is full: {error.strerror}", errno=error.errno)
    return DiskFailedError(f"the disk does not take it: {error.strerror}", errno=error.errno)
