"""Which files of the log may be deleted: a plain function over a table of them.

RocketMQ's rule asks when a file was modified, so a restored store would vanish at once. Ours asks the records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

MOST_FILES = 10  # of one run: the peer's deleteFileBatchMax
_BEGINNING_OF_TIME = -(1 << 63)  # store times are i8


class LogFile(NamedTuple):
    """A file of the log that lies wholly below everything that must be kept."""

    start: int
    end: int
    newest_ms: int | None  # store time of its newest record, or of one that is too new already; None: none is readable
    disk_bytes: int  # what deleting it gives back


class DiskUse(NamedTuple):
    """What a disk holds, as `df` counts it."""

    used_bytes: int
    total_bytes: int


class RetentionPolicy(NamedTuple):
    """retention_ms: how old a file's newest record must be. disk_percent: a fuller disk is too full. 0 is off."""

    retention_ms: int
    disk_percent: int

    def is_on(self) -> bool:
        """Whether anything is ever deleted."""
        return self.retention_ms > 0 or self.disk_percent > 0

    def oldest_kept_ms(self, now_ms: int) -> int:
        """Store time from which on records are kept, by age."""
        return now_ms - self.retention_ms if self.retention_ms else _BEGINNING_OF_TIME

    def excess_bytes(self, disk: DiskUse) -> int:
        """What must go for the disk not to be too full; 0 or less when it is not."""
        return disk.used_bytes - disk.total_bytes * self.disk_percent // 100 if self.disk_percent else 0


def files_to_delete(files: Iterable[LogFile], policy: RetentionPolicy, *, now_ms: int, disk: DiskUse) -> list[LogFile]:
    """A prefix of *files*, which are the log's first ones, oldest first; none behind the first that stays is looked at.

    By age, and, as long as the disk is too full, whatever the age. A file none of whose records can be read is as old
    as the next one that tells its age.
    """
    oldest_kept_ms, excess = policy.oldest_kept_ms(now_ms), policy.excess_bytes(disk)
    chosen: list[LogFile] = []
    ageless: list[LogFile] = []
    for file in files:
        if excess <= 0 and file.newest_ms is None:
            ageless.append(file)
            continue
        if excess <= 0 and (file.newest_ms is None or file.newest_ms >= oldest_kept_ms):
            break
        chosen += [*ageless, file]
        excess -= file.disk_bytes
        ageless = []
        if len(chosen) >= MOST_FILES:
            break
    return chosen[:MOST_FILES]
