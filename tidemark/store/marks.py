"""`tidemark/indexer/marks`: the progress of each shard of the pipeline (docs/format.md §8). Mapped words, native.

    word 0  magic and version       word 1  number of shards, including the key index
    word 2  time of the last publication, epoch milliseconds          word 3  unused
    word 4  the machine's boot to which the visible marks belong      word 5  time of a follower's last sign of life
    word 6  name, as a number, of the newest file of the key index; 0 for none
    word 7  1 while all of the key index is synced
    from word 8, four per shard: visible, durable, term, intended

**visible* moves after each chunk, *durable* after the fdatasync of everything below it. Both are exclusive ends. The
watermark is the least visible mark: everything below it is indexed and may be read. After a reboot only durable marks
are valid. A process that moves the least mark reads a byte of the file, which notifies the event loops that watch it
(`file_watch`). *intended* is the end of the chunk that is being built: if it differs from *visible* when a shard is
taken over, the previous builder was killed during a build.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import sys
import threading
import time
from pathlib import Path

from tidemark.errors import CorruptStoreError
from tidemark.store.file_watch import notify_watchers
from tidemark.store.open_file import OpenFile
from tidemark.store.originals.terms import machine_boot_id
from tidemark.store.storage import MappedWords, Storage, Words

MARKS_SIZE = 4096
MAX_SHARDS = 100
_MAGIC = int.from_bytes(b"TIDEMRK1", sys.byteorder)
_MAGIC_WORD, _SHARDS_WORD, _TIME_WORD, _, _BOOT_WORD, _ALIVE_WORD, _INDEX_FILE_WORD, _SYNCED_WORD = range(8)
_FIRST_MARK = 8
_WORDS_A_SHARD = 4
_VISIBLE, _DURABLE, _TERM, _INTENDED = (  # for each kind of mark: the word of each shard
    range(_FIRST_MARK + kind, _FIRST_MARK + _WORDS_A_SHARD * MAX_SHARDS, _WORDS_A_SHARD)
    for kind in range(_WORDS_A_SHARD)
)


@functools.cache
def _boot_number() -> int:
    return int.from_bytes(hashlib.blake2b(machine_boot_id().encode(), digest_size=8).digest(), "big")


class Marks:
    """The mapped marks file."""

    def __init__(self, words: Words, *, file: OpenFile | None = None) -> None:
        self._words = words
        self._file = file  # open if publications notify the file's watchers
        self._fence = threading.Lock()
        self.machine_was_restarted = False  # between the last publication and `open_to_write`

    @classmethod
    def open_read_only(cls, path: Path) -> Marks:
        """Map the marks for reads.

        FileNotFoundError: the pipeline has never run, or the file is still being created.
        CorruptStoreError: the file is invalid.
        """
        size = path.stat().st_size
        if size not in (0, MARKS_SIZE):
            raise CorruptStoreError(f"the marks file has {size} bytes instead of {MARKS_SIZE}", path=str(path))
        marks = cls(MappedWords(path, MARKS_SIZE, writable=False)) if size else None
        if marks is None or marks._words.load(_MAGIC_WORD) == 0:
            raise FileNotFoundError(errno.ENOENT, "the marks file is still being created", str(path))
        marks._require_magic(path)
        return marks

    @classmethod
    def open_to_write(cls, path: Path, storage: Storage, *, shards: int, term: int) -> Marks:
        """Map the marks for writes by the pipeline.

        In a new file nothing is indexed. If the number of shards has changed, all shards start at the least mark. After
        a reboot the visible marks are reset to the durable ones; the caller calls `claim_boot` once all files are
        consistent with these.
        """
        if not 1 <= shards <= MAX_SHARDS:
            raise ValueError(f"the number of shards is {shards}, allowed are 1 to {MAX_SHARDS}")
        storage.make_folder(path.parent)
        words = storage.words(path, MARKS_SIZE)
        marks = cls(words, file=OpenFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC)))
        if marks._words.load(_MAGIC_WORD) == 0:
            marks._words.store(_SHARDS_WORD, shards)
            for shard in range(shards):
                marks._words.store(_TERM[shard], term)
            marks._words.store(_BOOT_WORD, _boot_number())
            marks._words.store(_MAGIC_WORD, _MAGIC)
            marks.flush()
        marks._require_magic(path)
        if marks.shards != shards:
            marks._change_shards(shards)
        if not marks.is_of_this_boot():
            marks.machine_was_restarted = True
            marks.forget_visible()
        return marks

    def _require_magic(self, path: Path) -> None:
        if self._words.load(_MAGIC_WORD) != _MAGIC or not 1 <= self.shards <= MAX_SHARDS:
            raise CorruptStoreError(
                "the file is not a marks file of a version that this program supports", path=str(path)
            )

    def _change_shards(self, shards: int) -> None:
        least, term = self.durable_floor(), self.term
        for shard in range(MAX_SHARDS):
            for which, value in ((_VISIBLE, least), (_DURABLE, least), (_TERM, term), (_INTENDED, least)):
                self._words.store(which[shard], value)
        self.flush()
        self._words.store(_SHARDS_WORD, shards)
        self.flush()

    def forget_visible(self) -> None:
        """Reset the visible marks to the durable ones, durably: later files may not be on the disk."""
        for shard in range(self.shards):
            self._words.store(_VISIBLE[shard], self.durable(shard))
        self.flush()

    def claim_boot(self) -> None:
        """Record, durably, that the visible marks belong to the machine's current boot."""
        self._words.store(_BOOT_WORD, _boot_number())
        self.flush()

    def is_of_this_boot(self) -> bool:
        """Return True if the visible marks belong to the machine's current boot."""
        return self._words.load(_BOOT_WORD) == _boot_number()

    @property
    def shards(self) -> int:
        """Number of marks: queue shards and the key index."""
        return self._words.load(_SHARDS_WORD)

    @property
    def term(self) -> int:
        """The least term of all shards: the watermark's term, for `TermsFile.clamp`."""
        return self._least(_TERM)

    def shard_term(self, shard: int) -> int:
        """Return the writer's term in which this shard's marks are valid."""
        return self._words.load(_TERM[shard])

    @property
    def published_ms(self) -> int:
        """Time of the last move of the least mark, epoch milliseconds; 0: never."""
        return self._words.load(_TIME_WORD)

    def visible(self, shard: int) -> int:
        """Return the physical offset below which the shard has built everything."""
        return self._words.load(_VISIBLE[shard])

    def durable(self, shard: int) -> int:
        """Return the physical offset below which the shard's files survive a power cut."""
        return self._words.load(_DURABLE[shard])

    def watermark(self) -> int:
        """Return the least visible mark; after a reboot, the least durable one. Older terms need `TermsFile.clamp`."""
        if not self.is_of_this_boot():
            return self.durable_floor()
        return self._least(_VISIBLE)

    def durable_floor(self) -> int:
        """Return the least durable mark."""
        return self._least(_DURABLE)

    def published(self) -> tuple[int, int, int]:
        """Return `term`, `watermark` and `published_ms`, for a frequent reader.

        The terms are loaded first: a shard lowers its mark before it takes a new term.
        """
        load_every = self._words.load_every
        _, shards, published_ms, _, boot = load_every(1, _MAGIC_WORD, _BOOT_WORD + 1)
        end = _FIRST_MARK + _WORDS_A_SHARD * shards
        term = min(load_every(_WORDS_A_SHARD, _TERM.start, end))
        readable = _VISIBLE if boot == _boot_number() else _DURABLE
        return term, min(load_every(_WORDS_A_SHARD, readable.start, end)), published_ms

    def _least(self, which: range) -> int:
        """Return the least word of a kind."""
        return min(map(self._words.load, which[: self.shards]))

    def greatest_durable(self) -> int:
        """Return the greatest durable mark. The log was committed up to there."""
        return max(self.durable(shard) for shard in range(self.shards))

    def intended(self, shard: int) -> int:
        """Return the end of the chunk that the shard is building, or built last."""
        return self._words.load(_INTENDED[shard])

    def intend(self, shard: int, physical_offset: int) -> None:
        """Record that a chunk up to *physical_offset* is about to be built."""
        self._words.store(_INTENDED[shard], physical_offset)

    @property
    def is_index_synced(self) -> bool:
        """True if the key index's files are completely on the disk."""
        return self._words.load(_SYNCED_WORD) == 1

    def say_index_synced(self, is_synced: bool) -> None:
        """Set `is_index_synced`, durably: False before the first write to its files, True when all are synced."""
        if (self._words.load(_SYNCED_WORD) == 1) != is_synced:
            self._words.store(_SYNCED_WORD, int(is_synced))
            self.flush()

    @property
    def alive_ms(self) -> int:
        """Time of a follower's last sign of life, epoch milliseconds; at most a second old while one follows."""
        return self._words.load(_ALIVE_WORD)

    def say_alive(self) -> None:
        """Record that a follower is running."""
        self._words.store(_ALIVE_WORD, time.time_ns() // 1_000_000)

    def say_gone(self) -> None:
        """Record that no follower is running."""
        self._words.store(_ALIVE_WORD, 0)

    @property
    def index_file(self) -> int:
        """Name, as a number, of the newest index file that the pipeline has written; 0: none.

        If it is missing, or foreign entries follow the mark, a broker has run meanwhile.
        """
        return self._words.load(_INDEX_FILE_WORD)

    def set_index_file(self, name: int) -> None:
        """Set `index_file`."""
        self._words.store(_INDEX_FILE_WORD, name)

    def set_back(self, shard: int, physical_offset: int) -> None:
        """Set a shard's marks to *physical_offset*, durably, so that it builds again from there."""
        for which in (_VISIBLE, _DURABLE, _INTENDED):
            self._words.store(which[shard], physical_offset)
        self.flush()

    def lower(self, shard: int, physical_offset: int) -> None:
        """Lower the shard's marks to at most *physical_offset*, durably."""
        for which in (_VISIBLE, _DURABLE):
            self._words.store(which[shard], min(self._words.load(which[shard]), physical_offset))
        self._words.store(_INTENDED[shard], self.visible(shard))
        self.flush()

    def publish(self, shard: int, physical_offset: int) -> None:
        """Move a shard's visible mark. The caller holds the shard's lock and has built everything below the mark.

        If the least mark may have moved, the file's watchers are notified. Of shards that publish concurrently, the
        last one sees the others' marks, so a move of the least mark is never missed.
        """
        load, own = self._words.load, _VISIBLE[shard]
        before = load(own)
        self._words.store(own, physical_offset)
        with self._fence:  # an atomic operation: our store is visible before we read the others' marks
            pass
        for word in _VISIBLE[: load(_SHARDS_WORD)]:
            if word != own and load(word) <= before:
                return
        self._words.store(_TIME_WORD, time.time_ns() // 1_000_000)
        if self._file is not None:
            notify_watchers(self._file.descriptor)

    def publish_durable(self, shard: int, physical_offset: int) -> None:
        """Move a shard's durable mark, durably. The caller has synced everything below the mark."""
        self._words.store(_DURABLE[shard], physical_offset)
        self._words.flush()

    def adopt_term(self, shard: int, term: int, *, end_offset: int) -> None:
        """Lower a shard's marks to *end_offset* and set its term, durably. Its queues are already truncated."""
        self.lower(shard, end_offset)
        self._words.store(_TERM[shard], term)
        self.flush()

    def flush(self) -> None:
        """Make the words durable."""
        self._words.flush()

    def close(self) -> None:
        """Unmap the file."""
        self._words.close()
        self._file = None
