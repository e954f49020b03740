"""Checks a store's key index: compares every key of every record, in order, with the entries of the index files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.index.check.expected_units import runs_of
from tidemark.index.check.findings import Note, Reason, Report, Scope, relative
from tidemark.index.check.index_entries import Entries, EntryRow, SeenIndexFile
from tidemark.index.key_index import index_files
from tidemark.index.log_walk import LogPart
from tidemark.store.paths import StorePaths

_LARGEST_DIFFERENCE = (1 << 31) - 1
_IN_PLACE = 10  # if at most 1 key in 10 is wrong and the last is right, no entry is missing or superfluous


class _Keys(NamedTuple):
    """Keys of a part of the log, in order."""

    hashes: NDArray[np.int64]
    physical_offsets: NDArray[np.int64]
    store_timestamps: NDArray[np.int64]


@dataclass
class _Missing:
    """Consecutive keys that are missing from the index."""

    first: int  # number of the key, counted from the start of the check
    count: int
    physical_offset: int


class KeyChecks:
    """Check of one store's index. slots: of an index file; None: derived from its size, at 4 entries per slot."""

    def __init__(self, paths: StorePaths, scope: Scope, report: Report, *, slots: int | None) -> None:
        self._root = paths.root
        self._scope = scope
        self._report = report
        self._files = [file for path in index_files(paths.index) if (file := self._open(path, slots)) is not None]
        self._row = EntryRow(self._files)
        self._row.skip_below(scope.start)
        used = next((file for file in self._files if file.count), None)
        self._covered_from = None if used is None else int(used.entries[1]["physical_offset"])
        self._keys_to = min(scope.built_to, scope.keys_to)  # content above it is rebuilt, or not built yet
        self._last_physical_offset = scope.start - 1
        self._wrong_files: set[int] = set()
        self._keys_seen = 0
        self._missing: list[_Missing] = []
        self._not_reached = 0
        self._lagging = 0

    def _open(self, path: Path, slots: int | None) -> SeenIndexFile | None:
        if path.stat().st_size == 0:
            self._report.note(
                Note.EMPTY_FILE, "an empty index file: its creation was interrupted", path=self._name(path)
            )
            return None
        file = SeenIndexFile(path, slots)
        if file.slots is None:
            text = "the number of slots does not follow from the file's size: set it by --index-slots"
            self._report.find(Reason.FILE_SIZE, text, path=self._name(path))
            return None
        return file

    def _name(self, path: Path) -> str:
        return relative(path, self._root)

    # -- the log's keys -------------------------------------------------------------------------------------------

    def take(self, part: LogPart) -> None:
        """Compare the keys of *part* with the next entries."""
        found = part.hashed_keys()
        hashes = found.hashes
        if len(hashes) == 0:
            return
        keys = _Keys(hashes.astype(np.int64), found.physical_offsets, found.store_timestamps)
        there = self._row.next(len(hashes))
        if len(there) == len(hashes):
            wrong = (there.hashes != keys.hashes) | (there.physical_offsets != keys.physical_offsets)
            if not wrong[-1] and np.count_nonzero(wrong) * _IN_PLACE <= len(hashes):
                self._take_in_place(keys, there, wrong)
                self._row.advance(len(hashes))
                self._finish_part(keys)
                return
        self._take_as_sets(part, keys)
        self._finish_part(keys)

    def _finish_part(self, keys: _Keys) -> None:
        self._keys_seen += len(keys.hashes)
        self._last_physical_offset = int(keys.physical_offsets[-1])

    def _take_in_place(self, keys: _Keys, there: Entries, wrong: NDArray[np.bool_]) -> None:
        for first, end in runs_of(wrong):
            self._report_wrong(there, first, end - first, int(keys.physical_offsets[first]))
        begins = np.array([file.header.begin_timestamp for file in self._files], np.int64)[there.files]
        expected = np.clip((keys.store_timestamps - begins) // 1000, 0, _LARGEST_DIFFERENCE)
        late = (
            ~wrong
            & (keys.physical_offsets < self._keys_to)
            & (there.time_differences != expected)
            & (there.numbers > 1)
        )  # a file's first entry has another base time
        for first, end in runs_of(late):
            path = self._name(self._files[int(there.files[first])].path)
            text = f"the time of entry {int(there.numbers[first])} differs from its record's"
            physical_offset = int(keys.physical_offsets[first])
            self._report.find(Reason.KEY_TIME, text, path=path, physical_offset=physical_offset, count=end - first)

    def _report_wrong(self, there: Entries, i: int, count: int, physical_offset: int) -> None:
        self._wrong_files.update(there.files[i : i + count].tolist())
        if physical_offset >= self._keys_to:
            self._lagging += count
            return
        path = self._name(self._files[int(there.files[i])].path)
        text = f"entry {int(there.numbers[i])} contradicts the log"
        self._report.find(Reason.KEY_WRONG, text, path=path, physical_offset=physical_offset, count=count)

    def _take_as_sets(self, part: LogPart, keys: _Keys) -> None:
        """Compare as sets: entries are missing, or repeated as after a broker's restart."""
        there = self._row.below(part.end_offset)
        self._row.advance(len(there))
        base = self._last_physical_offset
        places = (there.physical_offsets - base << 31) | there.hashes
        wanted = (keys.physical_offsets - base << 31) | keys.hashes
        missing = ~np.isin(wanted, places)
        extra = ~np.isin(places, wanted) & (there.physical_offsets != base)
        missing_places = keys.physical_offsets[missing]
        for i in np.flatnonzero(extra).tolist():
            place = int(there.physical_offsets[i])
            if self._report.is_damaged(place):
                continue
            if (missing_places == place).any():
                missing &= ~((keys.physical_offsets == place) & missing)
                self._report_wrong(there, i, 1, place)
            else:
                self._report_extra(there, i)
        for first, end in runs_of(missing):
            self._add_missing(keys, first, end)

    def _report_extra(self, there: Entries, i: int) -> None:
        self._wrong_files.add(int(there.files[i]))
        place = int(there.physical_offsets[i])
        is_unwritten = place == 0 and int(there.hashes[i]) == 0 and not self._is_durable(self._files[there.files[i]])
        if place >= self._keys_to or is_unwritten:
            self._lagging += 0 if is_unwritten else 1  # its key is counted among the missing ones
            return
        path = self._name(self._files[int(there.files[i])].path)
        text = f"entry {int(there.numbers[i])} does not point at a record with its key"
        self._report.find(Reason.KEY_EXTRA, text, path=path, physical_offset=int(there.physical_offsets[i]))

    def _add_missing(self, keys: _Keys, first: int, end: int) -> None:
        places = keys.physical_offsets[first:end]
        not_reached = len(places) if self._covered_from is None else int((places < self._covered_from).sum())
        self._not_reached += 0 if self._scope.is_ours else not_reached
        lagging = int((places >= self._keys_to).sum())
        self._lagging += lagging
        skipped = min(0 if self._scope.is_ours else not_reached, len(places) - lagging)
        count = len(places) - lagging - skipped
        if count <= 0:
            return
        number = self._keys_seen + first + skipped
        last = self._missing[-1] if self._missing else None
        if last is not None and last.first + last.count == number:
            last.count += count
        else:
            self._missing.append(_Missing(number, count, int(places[skipped])))

    # -- at the end of the log ------------------------------------------------------------------------------------

    def finish(self, log_end: int, *, with_files: bool = True) -> None:
        """Report missing and superfluous keys, and, *with_files*, headers and chains of whole files."""
        for missing in self._missing:
            text = f"{missing.count} keys are missing from the index"
            place = missing.physical_offset
            self._report.find(Reason.KEY_MISSING, text, physical_offset=place, count=missing.count)
        if self._not_reached:
            text = f"the index does not reach back to the log's start: {self._not_reached} keys are missing"
            self._report.note(Note.INDEX_PART, text, count=self._not_reached)
        self._check_rest(log_end)
        if self._lagging:
            text = f"the index lags behind the log by {self._lagging} keys"
            self._report.note(Note.INDEX_LAGS, text, count=self._lagging)
        for number, file in enumerate(self._files if with_files else ()):
            if number not in self._wrong_files and self._is_in_scope(file) and self._is_durable(file):
                self._check_file(file, is_growing=self._scope.is_living and number == len(self._files) - 1)

    def _check_rest(self, log_end: int) -> None:
        """Check the entries after the last key of the log."""
        if self._scope.is_living or self._scope.end is not None:
            return
        rest = self._row.next(sum(file.count for file in self._files))
        behind = rest.physical_offsets >= log_end
        for i in np.flatnonzero(~behind & (rest.physical_offsets != self._last_physical_offset)).tolist():
            if not self._report.is_damaged(int(rest.physical_offsets[i])):
                self._report_extra(rest, i)
        count = int(behind.sum())
        if count and self._scope.is_clean:
            self._report_extra(rest, int(np.flatnonzero(behind)[0]))
        elif count:
            text = f"{count} keys of records past the log's end: the next start drops them"
            self._report.note(Note.UNITS_BEHIND_END, text, count=count)

    def _is_durable(self, file: SeenIndexFile) -> bool:
        """Return True if the next start continues the file as it is: all of it is below the durable mark."""
        return self._scope.is_living or self._scope.is_clean or file.header.end_physical_offset < self._keys_to

    def _is_in_scope(self, file: SeenIndexFile) -> bool:
        header, end = file.header, self._scope.end
        begins_before = end is None or header.begin_physical_offset < end
        return not self._scope.is_range or (header.end_physical_offset >= self._scope.start and begins_before)

    def _check_file(self, file: SeenIndexFile, *, is_growing: bool) -> None:
        path = self._name(file.path)
        if not is_growing and not self._is_header_right(file):
            self._report.find(Reason.INDEX_HEADER, "the header contradicts the first or the last entry", path=path)
            return
        entry, slot = file.broken_chain()
        if entry is not None:
            self._report.find(
                Reason.KEY_CHAIN, f"entry {entry} does not point at the previous entry of its chain", path=path
            )
        elif slot is not None:
            self._report.find(Reason.KEY_CHAIN, f"slot {slot} does not point at its newest entry", path=path)
        elif not is_growing and file.header.hash_slot_count != file.slots_in_use():
            self._report.find(
                Reason.INDEX_HEADER,
                f"the header counts {file.header.hash_slot_count} slots, but {file.slots_in_use()} are in use",
                path=path,
            )

    @staticmethod
    def _is_header_right(file: SeenIndexFile) -> bool:
        header = file.header
        if not file.is_counted or file.count == 0:
            return file.is_counted
        first, last = (int(file.entries[i]["physical_offset"]) for i in (1, file.count))
        return (first, last) == (header.begin_physical_offset, header.end_physical_offset)
