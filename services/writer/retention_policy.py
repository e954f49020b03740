"""The rule by which files of the log are deleted: a pure function over a table of files.

The age of a file is that of its records. RocketMQ uses the modification time of the file, with which a store that keeps
its old times when it is restored would be deleted at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

MOST_FILES = 10  # per run, RocketMQ's deleteFileBatchMax
_BEGINNING_OF_TIME = -(1 << 63)  # store times are i8


class ExpiredLogFile(NamedTuple):
    """A file of the log that ends below every byte that must be kept."""

    start: int
    end: int
    newest_ms: int | None  # store time of its newest record, or of any that is too new; None: no record is readable
    disk_bytes: int  # disk space that its deletion frees
    is_needed: bool = False  # another member of the group may still have to copy it


class DiskUse(NamedTuple):
    """Used and total bytes of a disk, as `df` counts them."""

    used_bytes: int
    total_bytes: int


class RetentionPolicy(NamedTuple):
    """The limits of retention; 0 is off.

    retention_ms: minimum age of a file's newest record. disk_percent: above this use, the disk is too full.
    """

    retention_ms: int
    disk_percent: int

    def is_on(self) -> bool:
        """Return True if any limit is set."""
        return self.retention_ms > 0 or self.disk_percent > 0

    def oldest_kept_ms(self, now_ms: int) -> int:
        """Return the store time from which records are kept by their age."""
        return now_ms - self.retention_ms if self.retention_ms else _BEGINNING_OF_TIME

    def excess_bytes(self, disk: DiskUse) -> int:
        """Return the bytes to delete until the disk is not too full; 0 or less if it is not."""
        return disk.used_bytes - disk.total_bytes * self.disk_percent // 100 if self.disk_percent else 0


def files_to_delete(
    files: Iterable[ExpiredLogFile], policy: RetentionPolicy, *, now_ms: int, disk: DiskUse
) -> list[ExpiredLogFile]:
    """Return the prefix of *files* to delete. Do not read *files* beyond the first one that is kept.

    *files* are the log's first files, oldest first. They are chosen by age unless they are needed, and in any case
    while the disk is too full. A file without a readable record counts as old as the next file with one.
    """
    oldest_kept_ms, excess = policy.oldest_kept_ms(now_ms), policy.excess_bytes(disk)
    chosen: list[ExpiredLogFile] = []
    ageless: list[ExpiredLogFile] = []
    for file in files:
        if excess <= 0 and file.is_needed:
            break
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
