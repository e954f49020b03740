"""KeyIndex: the only writer of the index files (docs/format.md §6).

Bytes are written in the order entries, slots, header, so that a kill at any point is repairable. Slots are read from a
mapping of the file, so no copy of a file is held in memory.
"""

from __future__ import annotations

import bisect
import datetime
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import CorruptStoreError, StoreContradictionError
from tidemark.format import index_file
from tidemark.format.dispatch_request import U8Array
from tidemark.format.index_file import Header, NewEntries, file_size
from tidemark.format.index_layout import ENTRY, HEADER_SIZE, SLOT_SIZE
from tidemark.index.part_keys import PartKeys
from tidemark.store.storage import Storage

_NAME_FORMAT = "%Y%m%d%H%M%S%f"
_NAME_LENGTH = 17
_PAGE_SIZE = 4096
_COPIED_AT_ONCE = 8 << 20
_CLEARED_AT_ONCE = 1 << 20

StoreTimeOf = Callable[[int], int | None]
"""Returns the store timestamp of the record at a physical offset; None if no record can be read there."""


def _no_store_time(physical_offset: int) -> int | None:
    return None


def _ignore(name: int) -> None:
    pass


def index_files(folder: Path) -> list[Path]:
    """Return the index files of *folder*, oldest first. As in RocketMQ, other names than numbers are skipped."""
    try:
        return sorted(path for path in folder.iterdir() if is_index_name(path.name) and path.is_file())
    except FileNotFoundError:
        return []


def is_index_name(name: str) -> bool:
    """Return True if *name* is a number, as every index file's name is."""
    return name.isascii() and name.isdigit()


class OpenIndexFile:
    """One index file, written through the storage and read through a mapping."""

    def __init__(self, path: Path, slots: int, storage: Storage, descriptor: int) -> None:
        self.path = path
        self._slots = slots
        self._storage = storage
        self._descriptor = descriptor
        self._bytes: U8Array = np.asarray(np.memmap(path, np.uint8, "r"))
        self.slot_table = self._bytes[HEADER_SIZE : index_file.entry_at(slots, 0)]  # the current slots, uint8
        self.number = int(path.name)
        self.header = index_file.decode_header(self._bytes[:HEADER_SIZE].tobytes())

    def write(self, new: NewEntries) -> None:
        """Append *new* in the order entries, slots, header."""
        first = index_file.entry_at(self._slots, self.header.index_count)
        self._storage.pwrite(self._descriptor, new.entries, first)
        self.write_slots(new.slot_numbers, new.slot_values)
        self.write_header(new.header)

    def write_header(self, header: Header) -> None:
        """Replace the header."""
        self._storage.pwrite(self._descriptor, index_file.encode_header(header), 0)
        self.header = header

    def write_slots(self, numbers: NDArray[np.int32], values: NDArray[np.int32]) -> None:
        """Set the slots *numbers*, which ascend, to *values*."""
        if len(numbers) == 1:  # of a single key, the most frequent build
            value = int(values[0]).to_bytes(SLOT_SIZE, "big", signed=True)
            self._storage.pwrite(self._descriptor, value, index_file.slot_at(int(numbers[0])))
            return
        done = 0
        while done < len(numbers):
            data, stretches, done = index_file.slot_stretches(self.slot_table, numbers, values, done)
            for number, begin, end in stretches:
                self._storage.pwrite(self._descriptor, data[begin:end], index_file.slot_at(number))

    def repair(self) -> None:
        """Reset the slots that a killed writer changed without its header: they point at or above index_count.

        Their entries were written before them, so each chain leads back to an entry that the header counts.
        """
        self._lead_slots_below(self.header.index_count)

    def _lead_slots_below(self, count: int) -> None:
        """Point slots of entry *count* or a later one at the newest entry of their chain below *count*."""
        slots = self.slot_table.view(">i4").astype(np.int32)
        wrong = np.flatnonzero(slots >= count)
        if not len(wrong):
            return
        values = slots[wrong]
        while (above := values >= count).any():
            values[above] = self._entries["previous_entry"][values[above]]
        self.write_slots(wrong.astype(np.int32), values)

    @property
    def _entries(self) -> NDArray[np.void]:
        """All entries, including entry 0."""
        return self._bytes[index_file.entry_at(self._slots, 0) :].view(ENTRY)

    def entries_from(self, physical_offset: int) -> int:
        """Return the count of entries of records at or above *physical_offset*: the last ones, because they ascend."""
        entries, end = self._entries, self.header.index_count
        first = bisect.bisect_left(range(1, end), physical_offset, key=lambda i: int(entries[i]["physical_offset"]))
        return end - 1 - first

    def is_split_at(self, physical_offset: int) -> bool:
        """Return True if all entries of records below *physical_offset* precede the others, as this program writes."""
        places = self._entries["physical_offset"][1 : self.header.index_count]
        below = self.header.index_count - 1 - self.entries_from(physical_offset)
        return bool((places[:below] < physical_offset).all() and (places[below:] >= physical_offset).all())

    def is_cut_at(self, physical_end: int) -> bool:
        """Return True if no entry belongs to a record at or above *physical_end* and no uncounted entry follows."""
        return self.entries_from(physical_end) == 0 and not self._has_bytes_after(self.header.index_count)

    def cut(self, physical_end: int, store_time_of: StoreTimeOf) -> None:
        """Drop the entries of records at or above *physical_end*; at least one entry stays.

        After a kill between two writes, another cut at the same offset completes it: slots point at kept entries before
        the header stops counting the dropped ones, and only uncounted bytes are cleared.
        """
        kept = self.header.index_count - self.entries_from(physical_end)
        assert kept > 1, "the caller drops a file without kept entries"
        self._lead_slots_below(kept)
        if kept < self.header.index_count:
            self.write_header(self._header_of(kept, store_time_of))
        self._clear_from(kept)
        self.flush()

    def _header_of(self, kept: int, store_time_of: StoreTimeOf) -> Header:
        last = self._entries[kept - 1]
        place = int(last["physical_offset"])
        seconds = int(last["time_difference"])
        stored = store_time_of(place)
        if stored is None:  # the latest possible: the end of the entry's second
            stored = self.header.begin_timestamp + 1000 * (seconds + 1) - 1
        return self.header._replace(
            end_timestamp=stored if kept > 2 else self.header.begin_timestamp,
            end_physical_offset=place,
            hash_slot_count=int(np.count_nonzero(self.slot_table.view(">i4"))),
            index_count=kept,
        )

    def _has_bytes_after(self, count: int) -> bool:
        at = index_file.entry_at(self._slots, count)
        return bool(self._bytes[at : at + _CLEARED_AT_ONCE].any())

    def _clear_from(self, count: int) -> None:
        """Clear the entries from *count* on, up to 1 MiB of zero bytes: a killed builder leaves no gaps."""
        while self._has_bytes_after(count):
            at = index_file.entry_at(self._slots, count)
            length = min(_CLEARED_AT_ONCE // ENTRY.itemsize * ENTRY.itemsize, self._bytes.size - at)
            self._storage.pwrite(self._descriptor, bytes(length), at)
            count += length // ENTRY.itemsize

    def copy_to(self, descriptor: int) -> None:
        """Write all bytes of this file into another file."""
        for at in range(0, self._bytes.size, _COPIED_AT_ONCE):
            self._storage.pwrite(descriptor, self._bytes[at : at + _COPIED_AT_ONCE].tobytes(), at)

    def flush(self) -> None:
        """Sync the file by fdatasync."""
        self._storage.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the file. The mapping is freed with its last view."""
        self._bytes = self.slot_table = np.empty(0, np.uint8)
        os.close(self._descriptor)


def read_header(path: Path) -> Header:
    """Return the header of the index file at *path*."""
    with path.open("rb") as file:
        return index_file.decode_header(file.read(HEADER_SIZE))


class KeyIndex:
    """Appender of the keys of walked records. Only the newest file is open; the others are full and never change."""

    def __init__(self, folder: Path, *, slots: int, entries: int, storage: Storage) -> None:
        self._folder = folder
        self._slots = slots
        self._entries = entries
        self._storage = storage
        self._last: OpenIndexFile | None = None
        self.touched = False
        self._skip = 0
        self._open_last()

    def begin(self, mark: int) -> None:
        """Continue at *mark*. Existing keys of records at or above it are skipped, not appended again.

        They belong to a chunk whose builder was killed between two writes.
        """
        self._skip = 0
        for path in reversed(index_files(self._folder)):
            open_one = self._last if self._last is not None and path == self._last.path else None
            file = open_one or OpenIndexFile(path, self._slots, self._storage, self._storage.open(path))
            known, count = file.entries_from(mark), file.header.index_count - 1
            if open_one is None:
                file.close()
            self._skip += known
            if known < count:
                break

    def _open_last(self) -> None:
        paths = index_files(self._folder)
        for path in paths:
            if path.stat().st_size == 0:  # its creation was interrupted
                self._storage.unlink(path)
            elif path.stat().st_size != file_size(self._slots, self._entries):
                raise StoreContradictionError(
                    f"{path} has {path.stat().st_size} bytes, but {self._slots} slots and {self._entries} entries "
                    f"need {file_size(self._slots, self._entries)}",
                    path=str(path),
                )
        for path in reversed(index_files(self._folder)):
            last = OpenIndexFile(path, self._slots, self._storage, self._storage.open(path))
            if last.header.index_count > 1:
                self._last = last
                return
            last.close()  # no key was completed; its times may be partly written
            self._storage.unlink(path)

    @property
    def newest_file(self) -> int:
        """Name of the newest file as a number; 0 if there is none."""
        return 0 if self._last is None else self._last.number

    def repair(self) -> None:
        """Repair the newest file after a kill; see OpenIndexFile.repair."""
        if self._last is not None:
            self._last.repair()

    def copy_newest(self) -> None:
        """Replace the newest file by a copy, so that a stale process that has it open writes into an unlinked file."""
        if self._last is None:
            return
        path, copy = self._last.path, self._folder.with_name(f"{self._folder.name}.copy")
        self._storage.unlink(copy)
        descriptor = self._storage.create(copy, file_size(self._slots, self._entries))
        self._last.copy_to(descriptor)
        self._storage.fdatasync(descriptor)
        os.close(descriptor)
        self._last.close()
        self._storage.rename(copy, path)
        self._last = OpenIndexFile(path, self._slots, self._storage, self._storage.open(path))

    def discard_last(self) -> None:
        """Drop the newest file after a power cut.

        Its keys are lost, so the caller first lowers the mark durably to `last_begins_at`.
        """
        if self._last is not None:
            path = self._last.path
            self._last.close()
            self._last = None
            self._storage.unlink(path)
            self._open_last()

    def last_begins_at(self) -> int | None:
        """Return the physical offset of the newest file's first key; None without a file or key."""
        header = None if self._last is None else self._last.header
        return header.begin_physical_offset if header is not None and header.index_count > 1 else None

    def discard_all(self) -> None:
        """Drop all files, so that the index is built from the start."""
        if self._last is not None:
            self._last.close()
            self._last = None
        for path in index_files(self._folder):
            self._storage.unlink(path)

    def cut_at(self, physical_end: int) -> int:
        """Return the physical offset to build from after `cut`: *physical_end*, or less if a file is not ours alone.

        If a broker has appended keys of older records, whole files are dropped; see `resume_at`.
        """
        for path in reversed(index_files(self._folder)):
            if read_header(path).end_physical_offset < physical_end:
                break
            if not self._is_split_at(path, physical_end):
                return self.resume_at(physical_end)
        return physical_end

    def is_cut_at(self, physical_end: int) -> bool:
        """Return True if `cut` would change nothing."""
        return self._last is None or self._last.is_cut_at(physical_end)

    def cut(
        self,
        physical_end: int,
        *,
        store_time_of: StoreTimeOf = _no_store_time,
        before_drop: Callable[[int], None] = _ignore,
    ) -> None:
        """Remove keys of records at or above *physical_end*, entry by entry. The caller has lowered marks to `cut_at`.

        before_drop  called before a file is dropped, with the name of the file that is then the newest; 0 for none
        """
        if self.cut_at(physical_end) < physical_end:
            while self._last is not None and self._last.header.end_physical_offset >= physical_end:
                self._drop_newest(before_drop)
            return
        while self._last is not None and self._last.entries_from(physical_end) == self._last.header.index_count - 1:
            self._drop_newest(before_drop)
        if self._last is not None:
            self._last.cut(physical_end, store_time_of)

    def _drop_newest(self, before_drop: Callable[[int], None]) -> None:
        older = index_files(self._folder)[:-1]
        before_drop(int(older[-1].name) if older else 0)
        self.discard_last()

    def _is_split_at(self, path: Path, physical_offset: int) -> bool:
        if self._last is not None and path == self._last.path:
            return self._last.is_split_at(physical_offset)
        file = OpenIndexFile(path, self._slots, self._storage, self._storage.open(path))
        try:
            return file.is_split_at(physical_offset)
        finally:
            file.close()

    def resume_at(self, physical_end: int) -> int:
        """Return the physical offset to build from after `truncate`, which drops whole files, at *physical_end*."""
        resume = physical_end
        for path in reversed(index_files(self._folder)):
            header = read_header(path)
            if header.index_count > 1:
                if header.end_physical_offset < physical_end:
                    break
                resume = min(resume, header.begin_physical_offset)
        return resume

    def truncate(self, physical_end: int) -> int:
        """Drop all files with keys of records at or above *physical_end*, and return `resume_at` of it.

        The caller first lowers the mark durably to `resume_at`: otherwise a crash in between would lose keys.
        """
        resume = self.resume_at(physical_end)
        while self._last is not None:
            header = self._last.header
            if header.index_count > 1 and header.end_physical_offset < physical_end:
                break
            self.discard_last()
        return resume

    def expire(self, log_min: int) -> int:
        """Drop the oldest files whose records are all below *log_min*, never the newest file, and return how many."""
        dropped = 0
        for path in index_files(self._folder)[:-1]:
            if read_header(path).end_physical_offset >= log_min:
                break
            self._storage.unlink(path)
            dropped += 1
        return dropped

    def append(self, keys: PartKeys) -> int:
        """Append *keys*, which follow all earlier ones, and return their count, including skipped ones."""
        hashes, physical, times = keys
        count = len(hashes)
        done = min(self._skip, count)
        self._skip -= done
        while done < count:
            last = self._writable()
            until = min(done + self._entries - last.header.index_count, count)
            last.write(
                index_file.make_entries(
                    last.header,
                    last.slot_table,
                    hashes=hashes[done:until],
                    physical_offsets=physical[done:until],
                    store_timestamps=times[done:until],
                )
            )
            self.touched = True
            done = until
        return count

    def _writable(self) -> OpenIndexFile:
        """Return the newest file if it has room, otherwise a new one."""
        last = self._last
        if last is not None and last.header.index_count < self._entries:
            return last
        if last is not None:
            last.flush()
        self._storage.make_folder(self._folder)
        path = self._folder / self._new_name()
        self._last = OpenIndexFile(path, self._slots, self._storage, self._created(path))
        if last is not None:  # as RocketMQ: the first entry's time counts from the old file's end
            end_time, end_offset = last.header.end_timestamp, last.header.end_physical_offset
            self._last.write_header(Header(end_time, end_time, end_offset, end_offset))
            last.close()
        return self._last

    def _created(self, path: Path) -> int:
        """Create a file, and return its descriptor. Raises DiskFullError.

        Its first page gets its disk space here. On a full tmpfs, the read of a hole through a mapping is fatal.
        """
        size = file_size(self._slots, self._entries)
        descriptor = self._storage.create(path, size)
        try:
            self._storage.pwrite(descriptor, bytes(min(size, _PAGE_SIZE)), 0)
        except BaseException:
            os.close(descriptor)
            self._storage.unlink(path)
            raise
        return descriptor

    def _new_name(self) -> str:
        now = datetime.datetime.now()  # noqa: DTZ005 - RocketMQ names index files by local time
        name = now.strftime(_NAME_FORMAT)[:_NAME_LENGTH]
        paths = index_files(self._folder)
        if paths and paths[-1].name >= name:
            if len(paths[-1].name) != _NAME_LENGTH:
                raise CorruptStoreError(
                    f"{paths[-1]} is not named by a time of {_NAME_LENGTH} digits", path=str(paths[-1])
                )
            latest = datetime.datetime.strptime(paths[-1].name + "000", _NAME_FORMAT)  # noqa: DTZ007
            name = (latest + datetime.timedelta(milliseconds=1)).strftime(_NAME_FORMAT)[:_NAME_LENGTH]
        return name

    def flush(self) -> None:
        """Make everything appended durable."""
        if self._last is not None:
            self._last.flush()
        self.touched = False

    def close(self) -> None:
        """Close the newest file."""
        if self._last is not None:
            self._last.close()
            self._last = None
