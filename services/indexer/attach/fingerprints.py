"""Heads of published records, by which a follower detects that the log was truncated and written again."""

from __future__ import annotations

from collections import deque

from tidemark.format.record import HEAD
from tidemark.read.file_run import FileRun

_KEPT = 256
_SIZE_FIELD = 4


class Fingerprints:
    """The heads of the last published records, oldest first. log: the log that contains them."""

    def __init__(self, log: FileRun) -> None:
        self._log = log
        self._heads: deque[tuple[int, bytes]] = deque(maxlen=_KEPT)

    def add(self, physical_offset: int) -> None:
        """Store the head of the record at *physical_offset*."""
        self._heads.append((physical_offset, self._log.read(physical_offset, HEAD.itemsize)))

    def is_newest_right(self) -> bool:
        """Return True if the last published record is unchanged."""
        return not self._heads or self._is_right(*self._heads[-1])

    def cut(self) -> int | None:
        """Return the end of the last record before the first changed one; None if none has changed, 0 if all have."""
        end = 0
        for physical_offset, head in self._heads:
            if not self._is_right(physical_offset, head):
                return end
            end = physical_offset + int.from_bytes(head[:_SIZE_FIELD], "big")
        return None

    def forget(self) -> None:
        """Remove all heads."""
        self._heads.clear()

    def _is_right(self, physical_offset: int, head: bytes) -> bool:
        found = self._log.read(physical_offset, HEAD.itemsize)
        if found:
            return found == head
        starts = self._log.listing().starts
        return bool(starts) and physical_offset < starts[0]  # expired
