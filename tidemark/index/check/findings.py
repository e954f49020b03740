"""Results of a check: findings, which are faults, and notes, which are not. Each is one line with a stable reason."""

from __future__ import annotations

import bisect
import enum
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_BEYOND_ALL = (1 << 63) - 1


class _Word(enum.StrEnum):
    """An enum whose values equal its names."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[str]) -> str:
        return name


class Reason(_Word):
    """Reasons of findings, in addition to the ledger's reasons for records (docs/format.md §9)."""

    FOREIGN_FILE = enum.auto()
    FILE_SIZE = enum.auto()
    QUEUE_TYPE = enum.auto()
    UNIT_MISSING = enum.auto()
    UNIT_WRONG = enum.auto()
    UNIT_EXTRA = enum.auto()
    INDEX_HEADER = enum.auto()
    KEY_MISSING = enum.auto()
    KEY_WRONG = enum.auto()
    KEY_EXTRA = enum.auto()
    KEY_CHAIN = enum.auto()
    KEY_TIME = enum.auto()
    CONFIG = enum.auto()
    CONSUMER_OFFSET = enum.auto()
    CHECKPOINT = enum.auto()
    MARKS = enum.auto()
    TERMS = enum.auto()
    NUMBERS = enum.auto()


MEANINGS: dict[str, str] = {  # the list of `docs/operations.md`; a test compares both
    Reason.FOREIGN_FILE: "RocketMQ does not load the file or folder, or fails on it",
    Reason.FILE_SIZE: "the size or name of a data file does not fit the others",
    Reason.QUEUE_TYPE: "the queue's type differs from topics.json",
    Reason.UNIT_MISSING: "a record without a unit",
    Reason.UNIT_WRONG: "a unit contradicts the log",
    Reason.UNIT_EXTRA: "a unit without a record",
    Reason.INDEX_HEADER: "an index file's header contradicts its entries",
    Reason.KEY_MISSING: "a key without an index entry",
    Reason.KEY_WRONG: "an index entry contradicts the log",
    Reason.KEY_EXTRA: "an index entry without a record",
    Reason.KEY_CHAIN: "slots or chains do not lead to the index entries",
    Reason.KEY_TIME: "an index entry has a wrong time",
    Reason.CONFIG: "a small file or its copy is unreadable",
    Reason.CONSUMER_OFFSET: "a group's offset is above its queue's end",
    Reason.CHECKPOINT: "the checkpoint contradicts the log",
    Reason.MARKS: "the marks contradict the log or are unreadable",
    Reason.TERMS: "the writer's terms are unreadable",
    Reason.NUMBERS: "queue offsets on disk are older than the log",
}


class Note(_Word):
    """Reasons of notes."""

    TORN_TAIL = enum.auto()  # bytes past the log's end that are not a record
    QUEUES_LAG = enum.auto()
    INDEX_LAGS = enum.auto()
    INDEX_PART = enum.auto()  # a broker's index that does not reach back to the log's start
    UNITS_BEHIND_END = enum.auto()  # the next start drops them
    CONSUMER_OFFSET_EXPIRED = enum.auto()
    TOPIC_GONE = enum.auto()  # records of a topic that a broker has deleted
    NOT_CHECKED = enum.auto()
    EMPTY_FILE = enum.auto()  # its creation was interrupted


@dataclass(frozen=True)
class Finding:
    """One fault or note and its location; None for fields that do not apply. count: of units, keys or records."""

    reason: str
    text: str
    path: str | None = None
    physical_offset: int | None = None
    size: int | None = None
    topic: str | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    count: int = 1

    def as_json(self) -> dict[str, Any]:
        """Return the fields that apply."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Scope:
    """The checked part of a store, and the guarantees that hold for it. Offsets are physical; ends are exclusive.

    start      the check begins at the first record at or after this offset
    end        None: the end of the log's records
    floor      a bad record below it is damage; a bad record above it is the log's end
    built_to   records below it must be in the queues and in the index; later records may be missing there
    keys_to    the same for the index alone: after a power cut, the next start rebuilds its content above this
    is_living  a writer or broker is running: data past *end* is being written
    is_clean   the store was closed cleanly: no repair waits for the next start
    is_ours    Tidemark's pipeline has built it: the index reaches back to the log's start
    is_range   a part of the log is skipped on purpose: data outside the range is not reported
    """

    start: int = 0
    end: int | None = None
    floor: int = 0
    built_to: int = _BEYOND_ALL
    keys_to: int = _BEYOND_ALL
    is_living: bool = False
    is_clean: bool = True
    is_ours: bool = False
    is_range: bool = False


class Report:
    """Collection of findings, notes, and the damaged places of the log."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.notes: list[Finding] = []
        self._damaged: list[tuple[int, int]] = []  # ascending

    def find(self, reason: str, text: str, **where: Any) -> None:
        """Add a finding."""
        self.findings.append(Finding(str(reason), text, **where))

    def note(self, reason: Note, text: str, **where: Any) -> None:
        """Add a note."""
        self.notes.append(Finding(str(reason), text, **where))

    def find_damage(self, reason: str, text: str, *, physical_offset: int, size: int, **where: Any) -> None:
        """Add a finding about the log's own bytes. Units and keys that point there are not reported again."""
        bisect.insort(self._damaged, (physical_offset, physical_offset + size))
        self.find(reason, text, physical_offset=physical_offset, size=size, **where)

    def is_damaged(self, physical_offset: int) -> bool:
        """Return True if the physical offset is within reported damage."""
        before = bisect.bisect_right(self._damaged, (physical_offset, _BEYOND_ALL))
        return before > 0 and physical_offset < self._damaged[before - 1][1]

    def has_damage_between(self, start: int, end: int) -> bool:
        """Return True if reported damage starts in [*start*, *end*)."""
        first = bisect.bisect_left(self._damaged, (start, 0))
        return first < len(self._damaged) and self._damaged[first][0] < end


def relative(path: Path, root: Path) -> str:
    """Return *path* relative to the store's root, as findings contain it."""
    return str(path.relative_to(root))
