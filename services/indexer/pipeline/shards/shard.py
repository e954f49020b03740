"""Shard: the interface that a shard of queues and the key index share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tidemark.format.check import Checker
from tidemark.index.log_walk import LogPart
from tidemark.index.rebuild_request import RebuildRequest
from tidemark.store.marks import Marks


class Shard(Protocol):
    """One shard's derived files. damages, oddities: how many were found so far."""

    @property
    def damages(self) -> int:
        """Places of the log that got no unit."""

    @property
    def oddities(self) -> int:
        """Records that differ from what the queue expected."""

    def checker(self) -> Checker:
        """Return the checker for this shard's walk over the log."""

    def begin(self, mark: int, *, intended: int) -> int:
        """Take over at *mark* and return the physical offset to build from."""

    def disown(self) -> None:
        """Continue in files that the previous holder, which may resume, does not have open."""

    def sync_from(self, mark: int) -> None:
        """Sync files that another process may have written for records at or above *mark*."""

    def resume_at(self, physical_end: int) -> int:
        """Return the physical offset to build from after `truncate` at *physical_end*."""

    def truncate(self, physical_end: int, marks: Marks) -> None:
        """Drop everything at or above *physical_end*. After a kill at any step, the next holder repeats it."""

    def begin_rebuild(self, request: RebuildRequest, position: int) -> None:
        """Build only the requested files, starting at *position*, until `end_rebuild`."""

    def end_rebuild(self) -> None:
        """Build all files again."""

    def expire(self, log_min: int) -> int:
        """Delete files whose records are all below *log_min* and return how many."""

    def hold_back(self, part: LogPart) -> bool:
        """Return True if *part* was taken to be built with the next one, where that costs less than one by one."""

    def apply(self, part: LogPart) -> int:
        """Build the parts held back, then *part*, and return the count of records or keys."""

    def take_sync(self) -> Callable[[], None]:
        """Return a function that syncs the files written since the last call. It needs no lock of the shard."""

    def close(self) -> None:
        """Close all files."""
