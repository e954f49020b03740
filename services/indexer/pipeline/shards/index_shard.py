"""The key index as a shard."""

from __future__ import annotations

from collections.abc import Callable

from tidemark.format.check import Checker, Crc
from tidemark.index.key_index import KeyIndex
from tidemark.index.log_walk import LogPart
from tidemark.index.part_keys import PartKeys, joined
from tidemark.index.rebuild_request import RebuildRequest
from tidemark.store.marks import Marks
from tidemark.store.storage import Storage

from ..plan import EpochPlan
from .index_cut import cut_index

_ENOUGH_KEYS, _MOST_HELD_PARTS = 1 << 16, 16  # limits of the parts held back to be written together


class IndexShard:
    """Builder of the key index. The caller holds its lock."""

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
        """Reopen the kept files; keys of records from *position* on are appended."""
        self._index.close()
        self._index = self._open()
        self._index.repair()
        self._index.begin(position)

    def end_rebuild(self) -> None:
        """No-op: the index is one run of files."""

    def checker(self) -> Checker:
        """Return a checker of all records. It skips body CRCs, because keys do not depend on bodies."""
        return Checker(crc=Crc.OFF)

    def begin(self, mark: int, *, intended: int) -> int:
        """Take over at *mark* and return it. intended ≠ mark: the previous builder was killed during a build."""
        if intended != mark:
            self._index.repair()
        self._index.begin(mark)
        return mark

    def disown(self) -> None:
        """Replace the newest file by a copy: a holder that resumes would write old slots into the file it has open."""
        self._index.copy_newest()

    def sync_from(self, mark: int) -> None:
        """Sync the newest file; the others were synced when they were full."""
        self._index.flush()

    def resume_at(self, physical_end: int) -> int:
        """Return *physical_end*, because the index is cut entry by entry; less if a broker's keys are mixed in."""
        return self._index.cut_at(physical_end)

    def truncate(self, physical_end: int, marks: Marks) -> None:
        """Remove keys of records at or above *physical_end*."""
        cut_index(self._index, physical_end, self._plan, marks)

    def expire(self, log_min: int) -> int:
        """Delete index files whose records are all below *log_min* and return how many."""
        return self._index.expire(log_min)

    def hold_back(self, part: LogPart) -> bool:
        """Hold *part* back, up to a limit. Random keys touch most slot pages even when few, so they are batched."""
        if self._held_keys >= _ENOUGH_KEYS or len(self._held) >= _MOST_HELD_PARTS:
            return False
        self._held.append(part.hashed_keys())
        return True

    @property
    def _held_keys(self) -> int:
        return sum(len(keys.hashes) for keys in self._held)

    def apply(self, part: LogPart) -> int:
        """Index the keys held back and those of *part*, and return how many."""
        keys = part.hashed_keys()
        if self._held:
            keys = joined([*self._held, keys])
            self._held = []
        return self._index.append(keys)

    @property
    def newest_file(self) -> int:
        """Name of the newest index file, as a number; 0 if there is none."""
        return self._index.newest_file

    def take_sync(self) -> Callable[[], None]:
        """Return a function that syncs the newest file, if it was written since the last call."""
        written, self._index.touched = self._index.touched, False
        return self._index.flush if written else lambda: None

    def close(self) -> None:
        """Close the newest file."""
        self._index.close()
