"""Segments: creates, deletes and zeroes the CommitLog's files.

A file has its full size from its creation, and the next one is created ahead of time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Iterator

import numpy as np

from tidemark.errors import DiskFailedError, DiskFullError, FlushFailedError, UnavailableError
from tidemark.store.mapped_file_queue import MappedFileQueue

_PIECE_SIZE = 64 << 10
_SECTOR_SIZE = 512
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Segments:
    """The files of the CommitLog. The appender calls `ensure`, and so does the background thread, ahead of it."""

    def __init__(self, log: MappedFileQueue) -> None:
        self.log = log
        self._creating = threading.Lock()

    @property
    def size(self) -> int:
        """Size of a file in bytes."""
        return self.log.file_size

    def end_of_file(self, offset: int) -> int:
        """Return the end of the file that covers *offset*."""
        return self.log.file_start(offset) + self.log.file_size

    def ensure(self, start: int) -> None:
        """Create the file that starts at *start*, if it is missing. Raises DiskFullError or UnavailableError."""
        with self._creating:
            if self.log.covers(start):
                return
            try:
                self.log.create_file(start)
            except FileExistsError as error:  # created by another program, so it must not be deleted
                raise UnavailableError(
                    f"{error.filename} exists, but the writer did not create it: move it away", path=error.filename
                ) from error
            except OSError as error:
                with contextlib.suppress(OSError):  # delete the incomplete file: a broker could not load it
                    self.log.delete_file(start)
                raise as_unavailable(error) from error

    def drop_unused(self, position: int) -> None:
        """Delete the files that were prepared after *position*. A clean stop leaves none."""
        with self._creating:
            for start in [start for start in self.log.starts if start > position]:
                self.log.delete_file(start)

    def is_zero(self, offset: int, length: int) -> bool:
        """Return True if these bytes of one file are zero."""
        data = self.log.read(offset, length)
        return data.count(0) == len(data)

    def wipe(self, offset: int, end: int) -> None:
        """Zero [offset, end) durably, so that no failed write looks like a record later.

        Only sectors that are not zero are written. They are allocated already, so this works on a full disk.
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

    def undo_write(self, offset: int, end: int, error: DiskFullError | OSError) -> UnavailableError:
        """Zero [offset, end) after a write there failed with *error*; return the exception to raise.

        Raises:
            FlushFailedError: the write cannot be undone; the log must stop.
        """
        try:
            self.wipe(offset, end)
        except (DiskFullError, OSError) as failure:
            raise FlushFailedError(
                f"a failed write at physical offset {offset} cannot be undone: {failure}",
                physical_offset=offset,
                end_offset=end,
            ) from failure
        return as_unavailable(error)

    def next_data(self, offset: int) -> int:
        """Return the first offset, from *offset* in its file, that may not be zero; the file's end if there is none."""
        start = self.log.file_start(offset)
        try:
            file = self.log.opened(start)
            return start + os.lseek(file.descriptor, offset - start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole follows
                return start + self.log.file_size
            return offset  # the file system has no SEEK_DATA: every byte may be data


def _dirty_sectors(offset: int, data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the stretches of whole sectors, within *data* at *offset*, that have non-zero bytes."""
    sectors = np.unique((np.flatnonzero(np.frombuffer(data, np.uint8)) + offset) // _SECTOR_SIZE)
    for run in np.split(sectors, np.flatnonzero(np.diff(sectors) > 1) + 1):
        if run.size:
            start, stop = int(run[0]) * _SECTOR_SIZE, (int(run[-1]) + 1) * _SECTOR_SIZE
            yield max(start, offset), min(stop, offset + len(data))


def as_unavailable(error: DiskFullError | OSError) -> UnavailableError:
    """Return the StoreError for a failed write: DiskFullError or DiskFailedError."""
    if isinstance(error, DiskFullError):
        return error
    if error.errno in _FULL:
        return DiskFullError(f"the disk is full: {error.strerror}", errno=error.errno)
    return DiskFailedError(f"a write to the disk failed: {error.strerror}", errno=error.errno)
