"""What the log of a group's writer calls, so that replicas get its bytes and decide when they are committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tidemark.store.batch_journal import BatchRange

from ..batch.batch import PutStatus
from .flusher import WrittenGroup

Commit = Callable[[int, Sequence[WrittenGroup], PutStatus], None]
"""Receives the committed end, the groups that are committed with it in the order of the log, and their status."""


class ReplicatedLog(Protocol):
    """Replication, as the log uses it. The methods after `require_enough` are called by the threads of the log."""

    timeout_s: float | None
    """Time after which an append that is not committed is answered FLUSH_SLAVE_TIMEOUT; None if the disk decides."""

    def attach(self, commit: Commit) -> None:
        """Call *commit* for the groups passed to `flushed`, in any thread, one call at a time."""

    def require_enough(self) -> None:
        """Raise NotLeaderError or InSyncReplicasNotEnoughError if no append may be accepted now."""

    def wrote(self, start: int, data: memoryview, batches: Sequence[BatchRange], store_timestamp: int) -> None:
        """Send whole *batches*, written at physical offset *start*. *data* is only valid during the call."""

    def rolled(self, start: int, size: int) -> None:
        """Send that a blank record of *size* bytes at *start* ends a file."""

    def flushed(self, written: WrittenGroup) -> None:
        """Note that the disk of the writer has *written* and everything before it."""
