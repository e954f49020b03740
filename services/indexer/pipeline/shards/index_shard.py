"""The key index as a shard of its own."""

from __future__ import annotations

from tidemark.format.check import Checker, Crc
from tidemark.index.key_index import KeyIndex
from tidemark.index.log_walk import LogPart
from tidemark.index.part_keys import PartKeys, joined
from tidemark.index.rebuild_request import RebuildRequest
from tidemark.store.marks import Marks
from tidemark.store.storage import Storage

from ..plan import EpochPlan
from .index_cut import cut_index

_ENOUGH_KEYS, _MOST_HELD_PARTS = 1 << 16, 16  # held back while more is to be built, then written together


class IndexShard:
    """Builds the key index, for the holder of its lock."""

    def __init__(self, plan: EpochPlan, storage: Storage) -> None:
        self._plan = plan
        self._storage = storage
        self._index = self._open()
        self._held: list[PartKeys] = []
        self.damages = 0
        self.oddities = 0

    def _open(self) -> KeyIndex:
        plan = self._plan
        return KeyIndex(plan.paths.index, slots=plan.index_slots, entries=plan.index_entries, storage=self._storage)

    def begin_rebuild(self, request: RebuildRequest, position: int) -> None:
        """Continue the kept files at *position*, from which on all keys are appended."""
        self._index.close()
        self._index = self._open()
        self._index.repair()
        self._index.begin(position)

    def end_rebuild(self) -> None:
        """Nothing: the index is one run of files."""

    def checker(self) -> Checker:
        """All records; bodies do not matter to keys."""
        return Checker(crc=Crc.OFF)

    def begin(self, mark: int, *, intended: int) -> int:
        """Take over at *mark*; where to build from. intended ≠ mark: the builder before was killed at work."""
        if intended != mark:
            self._index.repair()
        self._index.begin(mark)
        return mark

    def disown(self) -> None:
        """A holder that wakes up has the newest file open, and would write slots of long ago into it."""
        self._index.copy_newest()

    def sync_from(self, mark: int) -> None:
        """Sync the newest file; the others were synced when they were full."""
        self._index.flush()

    def resume_at(self, physical_end: int) -> int:
        """Return *physical_end*: the index is cut entry by entry. Less where a broker's keys are mixed with ours."""
        return self._index.cut_at(physical_end)

    def truncate(self, physical_end: int, marks: Marks) -> None:
        """Forget records at or above *physical_end*."""
        cut_index(self._index, physical_end, self._plan, marks)

    def expire(self, log_min: int) -> int:
        """Drop files of keys whose records are all below *log_min*; how many."""
        return self._index.expire(log_min)

    def hold_back(self, part: LogPart) -> bool:
        """As `DurableMarks.Shard`: keys whose slots lie anywhere change most of the table, few of them or many."""
        if self._held_keys >= _ENOUGH_KEYS or len(self._held) >= _MOST_HELD_PARTS:
            return False
        self._held.append(part.hashed_keys())
        return True

    @property
    def _held_keys(self) -> int:
        return sum(len(keys.hashes) for keys in self._held)

    def apply(self, part: LogPart) -> int:
        """Index every key of *part*, and those held back; returns how many keys."""
        held, self._held = self._held, []
        return self._index.append(joined([*held, part.hashed_keys()]))

    @property
    def newest_file(self) -> int:
        """Name, as a number, of the newest index file; 0 for none."""
        return self._index.newest_file

    def take_touched(self) -> bool:
        """Whether anything was written since the last call; the caller flushes it."""
        touched, self._index.touched = self._index.touched, False
        return touched

    def flush(self, touched: bool) -> None:
        """fdatasync, if needed."""
        if touched:
            self._index.flush()

    def close(self) -> None:
        """Close the newest file."""
        self._index.close()
