"""What a check says: findings, which are wrong, and notes, which are worth knowing. One line each, a stable reason."""

from __future__ import annotations

import bisect
import enum
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_BEYOND_ALL = (1 << 63) - 1


class _Word(enum.StrEnum):
    """A word that is its own value."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[str]) -> str:
        return name


class Reason(_Word):
    """Reasons of findings, beside the ledger's words for records (docs/format.md §9), which are used as they are."""

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


MEANINGS: dict[str, str] = {  # what `docs/operations.md` says about each; a test compares
    Reason.FOREIGN_FILE: "a file or folder that RocketMQ would not load, or would trip over",
    Reason.FILE_SIZE: "a data file of another size than the others, or at no multiple of it",
    Reason.QUEUE_TYPE: "a queue of the other type than topics.json says",
    Reason.UNIT_MISSING: "a record that must be in its queue and is not",
    Reason.UNIT_WRONG: "a unit that is not what the log says",
    Reason.UNIT_EXTRA: "a unit without a record",
    Reason.INDEX_HEADER: "an index file's header does not fit its entries",
    Reason.KEY_MISSING: "keys of a record that the index does not have",
    Reason.KEY_WRONG: "an index entry with another hash or place than the log says",
    Reason.KEY_EXTRA: "an index entry without a record",
    Reason.KEY_CHAIN: "slots or chains of an index file do not lead to its entries",
    Reason.KEY_TIME: "an index entry with a wrong time",
    Reason.CONFIG: "a small file cannot be read, or only its .bak",
    Reason.CONSUMER_OFFSET: "a group goes on above its queue's end",
    Reason.CHECKPOINT: "the checkpoint contradicts the log",
    Reason.MARKS: "the marks contradict the log, or cannot be read",
    Reason.TERMS: "the writer's terms cannot be read",
    Reason.NUMBERS: "the writer's table of queue numbers is behind the log: numbers would be used again",
}


class Note(_Word):
    """Reasons of notes."""

    TORN_TAIL = enum.auto()  # bytes behind the log's end that are no record
    QUEUES_LAG = enum.auto()
    INDEX_LAGS = enum.auto()
    INDEX_PART = enum.auto()  # a broker's index that does not reach back to the log's start
    UNITS_BEHIND_END = enum.auto()  # which the next start drops
    CONSUMER_OFFSET_EXPIRED = enum.auto()
    TOPIC_GONE = enum.auto()  # records of a topic that a broker has deleted
    NOT_CHECKED = enum.auto()
    EMPTY_FILE = enum.auto()  # cut off while it was made


@dataclass(frozen=True)
class Finding:
    """One thing and where it is; None for what does not apply. count: of units, keys or records, from there on."""

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
        """Its facts, without those that do not apply."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Scope:
    """What is checked, and what may be expected of it. Offsets are physical; ends are exclusive.

    start      first byte looked at: the first record at or behind it begins the check
    end        None: where the log's records end
    floor      below it a bad record is damage; above it the log ends there
    built_to   records below it must be in the queues and in the index; what lies above may lag
    keys_to    the same for the index alone: the next start makes its content above this again after a power cut
    is_living  somebody writes the store meanwhile: what is behind *end* is being made
    is_clean   it was closed in order: nothing of it waits for the next start
    is_ours    a pipeline of ours has built it: the index reaches back to the log's start
    is_range   a part of the log is left out on purpose: nothing is said about what lies around it
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
    """Collects findings and notes, and the places in the log that cannot be trusted."""

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
        """Add a finding about the log's own bytes: units and keys that point there are not told once more."""
        bisect.insort(self._damaged, (physical_offset, physical_offset + size))
        self.find(reason, text, physical_offset=physical_offset, size=size, **where)

    def is_damaged(self, physical_offset: int) -> bool:
        """Whether the place lies within damage that was told."""
        before = bisect.bisect_right(self._damaged, (physical_offset, _BEYOND_ALL))
        return before > 0 and physical_offset < self._damaged[before - 1][1]

    def has_damage_between(self, start: int, end: int) -> bool:
        """Whether damage that was told lies between two places."""
        first = bisect.bisect_left(self._damaged, (start, 0))
        return first < len(self._damaged) and self._damaged[first][0] < end


def relative(path: Path, root: Path) -> str:
    """A path as findings carry it: below the store's root."""
    return str(path.relative_to(root))
