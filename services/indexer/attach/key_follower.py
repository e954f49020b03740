"""Indexes the keys that a broker does not index, in index files in the state folder.

A broker with `messageIndexEnable=false` has no index, or one that ends where it was switched off. While the broker's
index keeps up, no files are built.
"""

from __future__ import annotations

import time
from pathlib import Path

from tidemark.format.check import Checker, Crc
from tidemark.format.dispatch_request import RequestArray
from tidemark.format.index_file import Header, decode_header
from tidemark.format.index_layout import HEADER_SIZE
from tidemark.index.dispatch import queue_records
from tidemark.index.key_index import KeyIndex, index_files
from tidemark.index.log_walk import LogPart, LogWalk
from tidemark.store.mapped_file_queue import MappedFileQueue, size_on_disk
from tidemark.store.marks import Marks
from tidemark.store.originals.terms import TermsFile
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage

_GRACE_S = 2.0  # a broker indexes a record right after it has dispatched it
_LOOK_INTERVAL_S = 0.25
_SYNC_INTERVAL_S = 5.0


class KeyFollower:
    """Watches a broker's index, and builds its own index from that one's end. size: slots and entries of a file."""

    def __init__(self, paths: StorePaths, storage: Storage, *, size: tuple[int, int]) -> None:
        self._paths = paths
        self._storage = storage
        self._size = size
        self._folder = paths.own / "index"
        self._marks_path = paths.indexer / "index-marks"
        self._terms = TermsFile(paths.terms)
        self._walk: LogWalk | None = None
        self._index: KeyIndex | None = None
        self._marks: Marks | None = None
        self._position = 0
        self._behind_since: float | None = None
        self._look_at = self._sync_at = 0.0
        if self._marks_path.exists():
            self._open_own()

    @property
    def is_building(self) -> bool:
        """True if this follower builds an index, because the broker does not."""
        return self._index is not None

    def close(self) -> None:
        """Sync the index, and close all files."""
        if self._index is not None and self._marks is not None:
            self._sync(self._index, self._marks)
            self._index.close()
            self._marks.close()
        if self._walk is not None:
            self._walk.close()

    def poll(self, watermark: int) -> bool:
        """Check or index one part of the log below *watermark*; return True if there is more."""
        now = time.monotonic()
        if self._index is None and now < self._look_at:
            return False
        if self._index is not None:
            return self._build(watermark, now)
        is_far_behind = self._watch_broker(watermark, now)
        self._look_at = now if is_far_behind else now + _LOOK_INTERVAL_S
        return is_far_behind

    def _next_part(self, watermark: int) -> LogPart | None:
        if self._walk is None:
            file_size = size_on_disk(self._paths.commit_log)
            if file_size is None:
                return None
            self._walk = LogWalk(MappedFileQueue(self._paths.commit_log, file_size), 0, Checker(crc=Crc.OFF))
        self._walk.position = self._position
        return next(self._walk.parts(limit=watermark, floor=watermark), None)

    # -- the broker's index ---------------------------------------------------------------------------------------

    def _watch_broker(self, watermark: int, now: float) -> bool:
        """Check that the broker's index keeps up with the log; begin our own index if it lags for over two seconds."""
        indexed = self._end_of_broker_index()
        self._position = max(self._position, indexed)
        part = self._next_part(watermark)
        if part is None:
            return False
        lacking = _with_keys(part.requests, above=indexed)
        if not len(lacking):
            self._position, self._behind_since = part.end_offset, None
            return part.end_offset < watermark
        self._position = int(lacking["physical_offset"][0])
        if self._behind_since is None:
            self._behind_since = now
        elif now - self._behind_since > _GRACE_S:
            self._open_own()
        return False

    def _end_of_broker_index(self) -> int:
        """Return the physical offset of the last record in the broker's index; -1 without one."""
        for path in reversed(index_files(self._paths.index)):
            header = _header(path)
            if header is not None and header.index_count > 1:
                return header.end_physical_offset
        return -1

    # -- our own index ----------------------------------------------------------------------------------------------

    def _open_own(self) -> None:
        """Begin an index at the position, or continue the index of an earlier run."""
        slots, entries = self._size
        is_new = not self._marks_path.exists()
        self._storage.make_folder(self._folder)
        term = self._terms.current().number
        index = KeyIndex(self._folder, slots=slots, entries=entries, storage=self._storage)
        marks = Marks.open_to_write(self._marks_path, self._storage, shards=1, term=term)
        if is_new:
            index.discard_all()
            marks.set_back(0, self._position)
        elif marks.machine_was_restarted:
            begin = index.last_begins_at()
            marks.set_back(0, marks.durable(0) if begin is None else min(begin, marks.durable(0)))
            index.discard_last()
            marks.claim_boot()
        elif marks.intended(0) != marks.visible(0):
            index.repair()
        self._index, self._marks = index, marks
        self._position = marks.visible(0)
        index.begin(self._position)

    def _build(self, watermark: int, now: float) -> bool:
        assert self._index is not None and self._marks is not None
        self._adopt_term(self._index, self._marks)
        part = self._next_part(watermark) if self._position < watermark else None
        if part is not None:
            self._marks.intend(0, part.end_offset)
            self._index.append(part.hashed_keys())
            self._marks.publish(0, part.end_offset)
            self._position = part.end_offset
        if now > self._sync_at:
            self._sync(self._index, self._marks)
            self._drop_expired()
            self._sync_at = now + _SYNC_INTERVAL_S
        return self._position < watermark and part is not None

    def _adopt_term(self, index: KeyIndex, marks: Marks) -> None:
        """Remove the keys of truncated records if the term has changed."""
        term, known = self._terms.current(), marks.shard_term(0)
        if term.number == known:
            return
        end = self._terms.clamp(marks.visible(0), of_term=known)
        if end < marks.visible(0):
            resume = index.resume_at(end)
            marks.lower(0, resume)
            index.truncate(end)
            end = resume
        marks.adopt_term(0, term.number, end_offset=end)
        self._position = marks.visible(0)
        index.begin(self._position)

    def _sync(self, index: KeyIndex, marks: Marks) -> None:
        if index.touched:
            index.flush()
        if marks.durable(0) != self._position:
            marks.publish_durable(0, self._position)

    def _drop_expired(self) -> None:
        """Delete index files whose records have all expired, but never the newest file."""
        log_min = min((int(path.name) for path in index_files(self._paths.commit_log)), default=0)
        for path in index_files(self._folder)[:-1]:
            header = _header(path)
            if header is not None and header.end_physical_offset < log_min:
                self._storage.unlink(path)


def _with_keys(requests: RequestArray, *, above: int) -> RequestArray:
    """Return the records above *above* that a broker would index."""
    rows = queue_records(requests)
    has_key = (rows["unique_key_length"] > 0) | (rows["keys_length"] > 0)
    return rows[has_key & (rows["physical_offset"] > above)]


def _header(path: Path) -> Header | None:
    """Return the file's header; None while the file is being made, or if it no longer exists."""
    try:
        with path.open("rb") as file:
            data = file.read(HEADER_SIZE)
    except FileNotFoundError:
        return None
    return decode_header(data) if len(data) == HEADER_SIZE else None
