"""Readable end of the log: the lowest mark of all shards, limited by the writer's terms."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tidemark.errors import CorruptStoreError
from tidemark.format.record import HEAD, Magic
from tidemark.read.file_run import FileRun
from tidemark.replication.member_role import MemberRole
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.marks import Marks
from tidemark.store.originals.terms import NO_TERM, Term, TermsFile, clamp, machine_boot_id
from tidemark.store.paths import StorePaths


class Watermark(NamedTuple):
    """State of the store at one time. Both offsets are exclusive ends; watermark ≤ committed_offset."""

    term: int
    physical_offset: int  # everything below is indexed and readable
    published_ms: int  # time when a mark last moved, epoch milliseconds; 0: never
    committed_offset: int
    cuts: int = 0  # how often the writer truncated visible bytes of the log, as seen by this reader
    is_held: bool = False  # the marks went back, and physical_offset is the earlier, greater value
    may_lack: bool = False  # the group of this member may have committed more than this member knows of

    @property
    def lag_bytes(self) -> int:
        """Committed bytes that are not visible yet."""
        return self.committed_offset - self.physical_offset

    @property
    def is_behind(self) -> bool:
        """True if a reader may have seen messages elsewhere, or acknowledgements of them, that are not visible yet."""
        return self.lag_bytes > 0 or self.may_lack


_NOT_HELD = Watermark(0, 0, 0, 0)[4:6]  # of a watermark that `WatermarkFloor` has not changed


class WatermarkReader:
    """Reader of marks, terms and checkpoint, which other processes write, replace and create.

    role: of this member, if the store is one of a group's
    """

    def __init__(self, paths: StorePaths) -> None:
        self._paths = paths
        self._terms = TermsFile(paths.terms)
        self._boot_id = machine_boot_id()
        self._marks: Marks | None = None
        self._marks_inode: int | None = None
        self._checkpoint: Checkpoint | None = None
        self._checkpoint_inode: int | None = None
        self.role = MemberRole(paths.replication)
        self._last = Watermark(0, 0, 0, 0)
        with contextlib.suppress(CorruptStoreError):  # treated as not indexed until the pipeline replaces the file
            self.refresh()

    def refresh(self) -> None:
        """Open new files and close replaced ones. Call it regularly.

        Raises CorruptStoreError if the marks file is invalid.
        """
        self.role.refresh()
        if self._marks is None or _inode(self._paths.marks) != self._marks_inode:
            self._marks_inode = _inode(self._paths.marks)
            try:
                self._marks = Marks.open_read_only(self._paths.marks)
            except FileNotFoundError:
                self._marks = None
            except CorruptStoreError:
                self._marks, self._marks_inode = None, None
                raise
        if self._checkpoint is None or _inode(self._paths.checkpoint) != self._checkpoint_inode:
            self._checkpoint_inode = _inode(self._paths.checkpoint)
            try:
                self._checkpoint = Checkpoint.open_read_only(self._paths.checkpoint)
            except (FileNotFoundError, CorruptStoreError):  # missing, or not at its full size yet
                self._checkpoint = None

    @property
    def marks(self) -> Marks | None:
        """The marks; None if the store was never indexed."""
        return self._marks

    @property
    def terms(self) -> Sequence[Term]:
        """The writer's terms as of the last `read`."""
        return self._terms.known

    @property
    def term(self) -> Term:
        """The writer's current term."""
        return self._terms.current()

    @property
    def flushed_store_time(self) -> int | None:
        """Store time, epoch milliseconds, of the last record that the writer has synced; None if unknown."""
        if self._checkpoint is None:
            return None
        return self._checkpoint.get(Field.PHYSIC_MESSAGE_TIMESTAMP) or None

    def read(self) -> Watermark:
        """Return the current state; the same object as before if nothing has changed.

        The committed offset is read first, so that lag 0 means that all of it is visible.
        """
        while True:
            terms = self._terms.known
            committed = self._committed()
            marks_term, visible, published_ms = (0, 0, 0) if self._marks is None else self._marks.published()
            if self._terms.terms() is terms:  # no new term meanwhile
                break
        term = terms[-1] if terms else NO_TERM
        visible = clamp(visible, of_term=marks_term, terms=terms)
        committed = committed if self._has_committed(term) else 0
        may_lack = visible < self.role.committed_below()
        seen = (term.number, visible, published_ms, max(committed, visible), *_NOT_HELD, may_lack)
        if seen != self._last:
            self._last = Watermark(*seen)
        return self._last

    def _committed(self) -> int:
        """Return the committed offset in the checkpoint, of any term."""
        return 0 if self._checkpoint is None else self._checkpoint.committed_offset

    def _has_committed(self, term: Term) -> bool:
        """Return True if the checkpoint's committed offset is valid in *term*."""
        return term.number > 0 and term.boot_id == self._boot_id

    def close(self) -> None:
        """Unmap the files."""
        for mapped in (self._marks, self._checkpoint):
            if mapped is not None:
                mapped.close()
        self._marks = self._checkpoint = None


class AttachedWatermarkReader(WatermarkReader):
    """Watermark of an attached store: the end of the records that its broker has dispatched.

    The committed offset is the end of the records visible in the log, because a broker's checkpoint does not contain
    it: real ones hold 0, or the start of the last record.
    """

    def __init__(self, paths: StorePaths, log: FileRun) -> None:
        super().__init__(paths)
        self._log = log

    def read(self) -> Watermark:
        """Return the state like any reader.

        If a record exists at the watermark, the committed offset is at least its end.
        """
        seen = super().read()
        return seen._replace(committed_offset=max(seen.committed_offset, self._end_of_record(seen.physical_offset)))

    def _committed(self) -> int:
        """Return the end of the records that the follower has seen."""
        return 0 if self._marks is None else self._marks.intended(0)

    def _has_committed(self, term: Term) -> bool:
        return True

    def _end_of_record(self, physical_offset: int) -> int:
        head = self._log.read(physical_offset, HEAD.itemsize)
        if len(head) < HEAD.itemsize:
            return 0
        record = np.frombuffer(head, HEAD)[0]
        is_there = record["magic"] in (Magic.V1, Magic.V2) and record["physical_offset"] == physical_offset
        return physical_offset + int(record["total_size"]) if is_there else 0


OnRegressed = Callable[[int, int], None]  # (published offset, offset of the marks)


class WatermarkFloor:
    """Keeps visible bytes visible: the published watermark decreases only after the writer has truncated the log.

    The pipeline may lower its marks while it rebuilds an index. The bytes are still there, and readers have seen them.
    Not thread-safe: the caller must make reading the marks and `hold` one atomic step.
    """

    def __init__(self, on_regressed: OnRegressed | None) -> None:
        self._on_regressed = on_regressed
        self._term = 0
        self._offset = 0  # greatest published offset, valid in _term
        self._cuts = 0
        self._is_held = False
        self._seen = self._published = Watermark(0, 0, 0, 0)  # the last arguments and answer of `hold`
        self._terms: Sequence[Term] | None = None

    def hold(self, seen: Watermark, terms: Sequence[Term], log_end: Callable[[], int]) -> Watermark:
        """Return the watermark to publish, which decreases only after a truncation.

        It is the same object as before for the same objects *seen* and *terms*, unless the marks are lower.

        Args:
            terms: the writer's terms, with the log's end at each recovery.
            log_end: return the end of the last file of the log. A log that ends earlier is a different log.
        """
        if not self._is_held and seen is self._seen and terms is self._terms:
            return self._published
        self._seen, self._terms = seen, terms
        self._published = self._hold(seen, terms, log_end)
        return self._published

    def _hold(self, seen: Watermark, terms: Sequence[Term], log_end: Callable[[], int]) -> Watermark:
        kept = clamp(self._offset, of_term=self._term, terms=terms)
        is_lower = seen.physical_offset < kept
        if is_lower and kept > log_end():
            kept, is_lower = seen.physical_offset, False
        self._cuts += kept < self._offset
        if is_lower and not self._is_held and self._on_regressed is not None:
            self._on_regressed(kept, seen.physical_offset)
        self._is_held = is_lower
        self._term, self._offset = seen.term, max(kept, seen.physical_offset)
        if not is_lower:
            return seen._replace(cuts=self._cuts) if self._cuts else seen
        committed = max(seen.committed_offset, kept)
        return seen._replace(physical_offset=kept, committed_offset=committed, cuts=self._cuts, is_held=True)


def _inode(path: os.PathLike[str]) -> int | None:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None
