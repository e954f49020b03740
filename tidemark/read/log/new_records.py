"""Queues of the newest records, read from the log: a service looks only at the requests that wait for these queues."""

from __future__ import annotations

import numpy as np

from tidemark.errors import StoreError
from tidemark.format.check import Checker, Crc
from tidemark.format.dispatch_request import U8Array
from tidemark.format.queue_groups import number_queues, topic_of
from tidemark.read.cached import NotCachedError, cached_only
from tidemark.read.file_run import FileRun

_MOST_BYTES = 1 << 20  # of new records; a check of a thousand waiting requests takes longer than this read
_MOST_QUEUES = 256  # of new records; each takes as long as the check of a waiting request


class NewRecords:
    """Reader of the end of *log*. Not thread-safe."""

    def __init__(self, log: FileRun) -> None:
        self._log = log
        self._checker = Checker(crc=Crc.OFF)
        self._buffer: U8Array = np.empty(0, np.uint8)

    def queues(self, begin: int, end: int) -> set[tuple[str, int]] | None:
        """Return (topic, queue id) of the records between two physical offsets, except units of light queues.

        None if they are not known without waiting for a disk: too many bytes or queues, another file, a failing read,
        or no valid records.
        """
        size = end - begin
        if size == 0:
            return set()
        if not 0 < size <= _MOST_BYTES:
            return None
        if len(self._buffer) < size:
            self._buffer = np.empty(size, np.uint8)
        records = self._buffer[:size]
        try:
            if not self._log.known.starts:
                self._log.listing()  # the log may have its first file now
            with cached_only():
                is_read = self._log.read_into(begin, records)
        except (NotCachedError, StoreError, OSError):
            return None
        found = self._checker.check(records, base_offset=begin) if is_read else None
        if found is None or found.end_at < size:
            return None
        firsts = number_queues(records, found.requests).firsts
        if len(firsts) > _MOST_QUEUES:
            return None
        rows = found.requests[firsts]
        return {(topic_of(records, row).decode("utf-8", "replace"), int(row["queue_id"])) for row in rows}
