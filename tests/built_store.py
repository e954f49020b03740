"""A store that a test writes record by record with struct alone: log, queue units, index entries (format.md §2, §6).

Tidemark's code writes only the marks and terms, which are Tidemark's own formats.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.builders import STORE_MS, blank_bytes, properties, record_bytes, wire_batch
from tidemark.store.marks import Marks
from tidemark.store.originals.terms import machine_boot_id
from tidemark.store.storage import DiskStorage

PRE_BLANK = struct.pack(">qiq", 0, 0x7FFFFFFF, 0)


def java_hash(text: str) -> int:
    """Return Java's String.hashCode()."""
    value = 0
    raw = text.encode("utf-16-be")
    for i in range(0, len(raw), 2):
        value = (31 * value + (raw[i] << 8 | raw[i + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


class Written(NamedTuple):
    """A written record: its position and size."""

    physical_offset: int
    size: int
    queue_offset: int
    store_timestamp: int


class BuiltStore:
    """A store that appends records and their units; nothing is visible before `publish`.

    marked  False: the store is a broker's, without any file of Tidemark's.
    """

    def __init__(
        self,
        root: Path,
        *,
        log_file_size: int = 65_536,
        units_a_file: int = 50,
        slots: int = 16,
        entries: int = 64,
        marked: bool = True,
    ) -> None:
        self.root = root
        self.log_file_size = log_file_size
        self.units_a_file = units_a_file
        self.slots, self.entries = slots, entries
        self.end = 0
        self.clock = STORE_MS
        self.next: dict[tuple[str, int], int] = {}
        self.batch_units: dict[tuple[str, int], int] = {}
        self.topics: dict[str, dict[str, Any]] = {}
        self.tombstones: dict[str, dict[str, Any]] = {}
        self.index_name = 20260101000000000
        self.index_count = entries  # full, so that the first key begins a new file
        (root / "commitlog").mkdir(parents=True)
        marks = root / "tidemark" / "indexer" / "marks"
        self._marks = Marks.open_to_write(marks, DiskStorage(), shards=1, term=0) if marked else None

    # -- topics ---------------------------------------------------------------------------------------------------

    def topic(self, name: str, *, queues: int = 1, batch: bool = False) -> None:
        """Add a topic to topics.json."""
        self.topics[name] = {
            "topicName": name,
            "readQueueNums": queues,
            "writeQueueNums": queues,
            "perm": 6,
            "attributes": {"queue.type": "BatchCQ"} if batch else {},
        }
        self._save_topics()

    def _save_topics(self) -> None:
        _replace(self.root / "config" / "topics.json", {"topicConfigTable": self.topics})

    def delete_topic(self, name: str) -> None:
        """Delete a topic as the writer does: write a tombstone, then topics.json. Files of queues and keys stay."""
        ends = {queue_id: offset for (topic, queue_id), offset in self.next.items() if topic == name}
        self.tombstones[name] = {"topic": name, "physicalOffset": self.end, "nextOffsets": ends}
        _replace(self.root / "tidemark" / "writer" / "tombstones.json", {"tombstones": [*self.tombstones.values()]})
        del self.topics[name]
        self._save_topics()

    def drop_queues(self, name: str) -> None:
        """Remove the files of a deleted topic's queues, as the pipeline does when it notices the tombstone."""
        for root in ("consumequeue", "batchconsumequeue"):
            shutil.rmtree(self.root / root / name, ignore_errors=True)
        for key in [key for key in self.batch_units if key[0] == name]:
            del self.batch_units[key]

    def is_batch(self, topic: str) -> bool:
        return bool(self.topics[topic]["attributes"])

    # -- records --------------------------------------------------------------------------------------------------

    def append(
        self,
        topic: str,
        body: bytes = b"Hello",
        entries: Mapping[str, str] | None = None,
        *,
        queue_id: int = 0,
        unit: bool = True,
        at_ms: int | None = None,
        **fields: Any,
    ) -> Written:
        """Append one record of one message, and its unit."""
        return self._append(topic, queue_id, body, entries or {}, 1, unit, at_ms, fields)

    def append_batch(
        self,
        topic: str,
        elements: Sequence[tuple[bytes, Mapping[str, str], int]],
        entries: Mapping[str, str] | None = None,
        *,
        queue_id: int = 0,
        at_ms: int | None = None,
    ) -> Written:
        """Append one inner batch of (body, properties, flag), and its unit."""
        body = wire_batch(*((body, properties(own), flag) for body, own, flag in elements))
        base = self.next.get((topic, queue_id), 0)
        wrapper = {**(entries or {}), "INNER_NUM": str(len(elements)), "INNER_BASE": str(base)}
        return self._append(topic, queue_id, body, wrapper, len(elements), True, at_ms, {"sys_flag": 0xC0})

    def _append(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        entries: Mapping[str, str],
        count: int,
        unit: bool,
        at_ms: int | None,
        fields: dict[str, Any],
    ) -> Written:
        self.clock = self.clock + 1 if at_ms is None else at_ms
        queue_offset = self.next.get((topic, queue_id), 0)
        fields = {
            "topic": topic.encode(),
            "body": body,
            "properties": properties(entries),
            "queue_id": queue_id,
            "queue_offset": queue_offset,
            "store_timestamp": self.clock,
            **fields,
        }
        size = len(record_bytes(**fields))
        left = self.log_file_size - self.end % self.log_file_size
        if size + 8 > left:
            self.write_log(self.end, blank_bytes(left))
            self.end += left
        written = Written(self.end, size, queue_offset, self.clock)
        self.write_log(self.end, record_bytes(**{**fields, "physical_offset": self.end}))
        self.end += size
        if unit:
            self.next[topic, queue_id] = queue_offset + count
            self.write_unit(topic, queue_id, written, entries, count)
            for key in [entries.get("UNIQ_KEY", ""), *entries.get("KEYS", "").split(" ")]:
                if key:
                    self.index(topic, key, written)
        return written

    def write_log(self, at: int, data: bytes) -> None:
        """Write bytes at any position of the log."""
        start = at - at % self.log_file_size
        _write(self.root / "commitlog" / f"{start:020d}", self.log_file_size, at - start, data)

    # -- units ----------------------------------------------------------------------------------------------------

    def write_unit(
        self, topic: str, queue_id: int, written: Written, entries: Mapping[str, str], count: int = 1
    ) -> None:
        """Write the record's unit at its position in the queue."""
        code = java_hash(entries["TAGS"]) if entries.get("TAGS") else 0
        physical_offset, size, queue_offset, at_ms = written
        if self.is_batch(topic):
            number = self.batch_units.get((topic, queue_id), 0)
            self.batch_units[topic, queue_id] = number + 1
            data = struct.pack(">qiqqqhii", physical_offset, size, code, at_ms, queue_offset, count, -1, 0)
        else:
            number = queue_offset
            data = struct.pack(">qiq", physical_offset, size, code)
            # the queue begins in the middle of a file
            if not (self.root / "consumequeue" / topic / str(queue_id)).exists():
                head = number % self.units_a_file
                self.write_units(topic, queue_id, number - head, PRE_BLANK * head)
        self.write_units(topic, queue_id, number, data)

    def write_units(self, topic: str, queue_id: int, number: int, data: bytes) -> None:
        """Write units of one file, from number *number*."""
        batch = self.is_batch(topic)
        unit_size = 46 if batch else 20
        size = unit_size * self.units_a_file
        start = number * unit_size - number * unit_size % size
        folder = self.root / ("batchconsumequeue" if batch else "consumequeue") / topic / str(queue_id)
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / f"{start:020d}", size, number * unit_size - start, data)

    # -- the key index --------------------------------------------------------------------------------------------

    def index(self, topic: str, key: str, written: Written) -> None:
        """Add one index entry (docs/format.md §6)."""
        path = self.root / "index" / str(self.index_name)
        if self.index_count >= self.entries:
            self.index_name += 1
            self.index_count = 1
            path = self.root / "index" / str(self.index_name)
            path.parent.mkdir(exist_ok=True)
            _create(path, 40 + 4 * self.slots + 20 * self.entries)
        data = bytearray(path.read_bytes())
        hashed = abs(java_hash(f"{topic}#{key}"))
        slot_at = 40 + 4 * (hashed % self.slots)
        (previous,) = struct.unpack_from(">i", data, slot_at)
        begin, _, begin_offset, _, used, _ = struct.unpack_from(">qqqqii", data)
        if self.index_count == 1:
            begin, begin_offset = written.store_timestamp, written.physical_offset
        entry = struct.pack(
            ">iqii", hashed, written.physical_offset, (written.store_timestamp - begin) // 1000, previous
        )
        at = 40 + 4 * self.slots + 20 * self.index_count
        data[at : at + 20] = entry
        data[slot_at : slot_at + 4] = struct.pack(">i", self.index_count)
        self.index_count += 1
        used += previous == 0
        head = (begin, written.store_timestamp, begin_offset, written.physical_offset, used, self.index_count)
        data[:40] = struct.pack(">qqqqii", *head)
        with path.open("r+b") as file:
            file.write(data)

    # -- visibility -----------------------------------------------------------------------------------------------

    @property
    def marks(self) -> Marks:
        """Return Tidemark's own marks."""
        assert self._marks is not None
        return self._marks

    def publish(self, physical_offset: int | None = None) -> None:
        """Mark everything, or everything below *physical_offset*, as indexed."""
        self.marks.publish(0, self.end if physical_offset is None else physical_offset)

    def commit(self) -> None:
        """Record everything as committed, by a writer of this boot of the machine (docs/format.md §7)."""
        terms, checkpoint = self.root / "tidemark" / "writer" / "terms", self.root / "checkpoint"
        if not checkpoint.exists():
            terms.parent.mkdir(parents=True, exist_ok=True)
            terms.write_text(f"1 0 {machine_boot_id()}\n")
            self.marks.adopt_term(0, 1, end_offset=1 << 40)
        _write(checkpoint, 4096, 32, struct.pack(">q", self.end))


def _replace(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replacement = path.with_suffix(".new")
    replacement.write_text(json.dumps(content))
    replacement.rename(path)


def _write(path: Path, size: int, at: int, data: bytes) -> None:
    if not path.exists():
        _create(path, size)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def _create(path: Path, size: int) -> None:
    """Create a file as a broker does, which is at its full size at once: a written one grows page by page."""
    with path.open("xb") as file:
        file.truncate(size)
