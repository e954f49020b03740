"""Heads of records that were published: how a follower notices that the log was cut off and written anew."""

from __future__ import annotations

from collections import deque

from tidemark.format.record import HEAD
from tidemark.read.file_run import FileRun

_KEPT = 256
_SIZE_FIELD = 4


class Fingerprints:
    """The heads of the last records that were published, oldest first. log: where they lie."""

    def __init__(self, log: FileRun) -> None:
        self._log = log
        self._heads: deque[tuple[int, bytes]] = deque(maxlen=_KEPT)

    def add(self, physical_offset: int) -> None:
        """Remember the record that starts there."""
        self._heads.append((physical_offset, self._log.read(physical_offset, HEAD.itemsize)))

    def is_newest_right(self) -> bool:
        """Whether the record that was published last still stands where it did."""
        return not self._heads or self._is_right(*self._heads[-1])

    def cut(self) -> int | None:
        """Behind the last record before the first one that has changed; None when none has. 0: all have changed."""
        end = 0
        for physical_offset, head in self._heads:
            if not self._is_right(physical_offset, head):
                return end
            end = physical_offset + int.from_bytes(head[:_SIZE_FIELD], "big")
        return None

    def forget(self) -> None:
        """Begin anew."""
        self._heads.clear()

    def _is_right(self, physical_offset: int, head: bytes) -> bool:
        found = self._log.read(physical_offset, HEAD.itemsize)
        if found:
            return found == head
        starts = self._log.listing().starts
        return bool(starts) and physical_offset < starts[0]  # expired
