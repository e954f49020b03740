"""`tidemark/indexer/marks`: how far each shard of the pipeline has come (docs/format.md §8). Mapped words, native.

    word 0  magic and version       word 1  number of shards, the key index among them
    word 2  time of the last publication, epoch milliseconds          word 3  unused
    word 4  which boot of the machine the visible marks belong to     word 5  time a follower last said it is there
    word 6  name, as a number, of the newest file of the key index; 0 for none
    word 7  1 while all of the key index is synced
    from word 8, four a shard: visible, durable, term, intended

*visible* moves after each chunk, *durable* after the fdatasync of what it covers. The watermark is the least visible
mark: everything below it is indexed and may be read. Both are exclusive ends. After a reboot only durable marks count.
Whoever moves the least mark reads a byte of the file: that tells the event loops that watch it (`file_watch`).
*intended* is where the chunk ends that is being built: unlike *visible*, it tells that a builder was killed at work.
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
from tidemark.store.file_watch import tell_watchers
from tidemark.store.open_file import OpenFile
from tidemark.store.originals.terms import machine_boot_id
from tidemark.store.storage import MappedWords, Storage, Words

MARKS_SIZE = 4096
MAX_SHARDS = 100
_MAGIC = int.from_bytes(b"TIDEMRK1", sys.byteorder)
_MAGIC_WORD, _SHARDS_WORD, _TIME_WORD, _, _BOOT_WORD, _ALIVE_WORD, _INDEX_FILE_WORD, _SYNCED_WORD = range(8)
_FIRST_MARK = 8
_VISIBLE, _DURABLE, _TERM, _INTENDED = range(4)
_WORDS_A_SHARD = 4


@functools.cache
def _boot_number() -> int:
    return int.from_bytes(hashlib.blake2b(machine_boot_id().encode(), digest_size=8).digest(), "big")


def _word(shard: int, which: int) -> int:
    return _FIRST_MARK + _WORDS_A_SHARD * shard + which


class Marks:
    """The mapped marks file."""

    def __init__(self, words: Words, *, file: OpenFile | None = None) -> None:
        self._words = words
        self._file = file  # of the file, where its watchers are to be told
        self._fence = threading.Lock()
        self.machine_was_restarted = False  # between the last publication and open_to_write

    @classmethod
    def open_read_only(cls, path: Path) -> Marks:
        """FileNotFoundError when the pipeline has never run, or is only just making the file.

        CorruptStoreError when it is something else.
        """
        size = path.stat().st_size
        if size not in (0, MARKS_SIZE):
            raise CorruptStoreError("the marks file has a wrong size", path=str(path))
        marks = cls(MappedWords(path, MARKS_SIZE, writable=False)) if size else None
        if marks is None or marks._words.load(_MAGIC_WORD) == 0:
            raise FileNotFoundError(errno.ENOENT, "the marks are only just being made", str(path))
        marks._require_magic(path)
        return marks

    @classmethod
    def open_to_write(cls, path: Path, storage: Storage, *, shards: int, term: int) -> Marks:
        """The pipeline's own. Another number of shards than before: all start at the least mark.

        A new file says that nothing is indexed. After a reboot the visible marks are forgotten, and `claim_boot` is for
        the caller, once everything fits the durable ones again.
        """
        if not 1 <= shards <= MAX_SHARDS:
            raise ValueError(f"{shards} shards")
        storage.make_folder(path.parent)
        words = storage.words(path, MARKS_SIZE)
        marks = cls(words, file=OpenFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC)))
        if marks._words.load(_MAGIC_WORD) == 0:
            marks._words.store(_SHARDS_WORD, shards)
            for shard in range(shards):
                marks._words.store(_word(shard, _TERM), term)
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
            raise CorruptStoreError("this is no marks file of a version this program knows", path=str(path))

    def _change_shards(self, shards: int) -> None:
        least, term = self.durable_floor(), self.term
        for shard in range(MAX_SHARDS):
            for which, value in ((_VISIBLE, least), (_DURABLE, least), (_TERM, term), (_INTENDED, least)):
                self._words.store(_word(shard, which), value)
        self.flush()
        self._words.store(_SHARDS_WORD, shards)
        self.flush()

    def forget_visible(self) -> None:
        """Go back to the durable marks, durably: what was built since may not be on the disk."""
        for shard in range(self.shards):
            self._words.store(_word(shard, _VISIBLE), self.durable(shard))
        self.flush()

    def claim_boot(self) -> None:
        """Let the visible marks count as published since the machine started, durably."""
        self._words.store(_BOOT_WORD, _boot_number())
        self.flush()

    def is_of_this_boot(self) -> bool:
        """Whether the visible marks were published since the machine started."""
        return self._words.load(_BOOT_WORD) == _boot_number()

    @property
    def shards(self) -> int:
        """Number of marks: queue shards and the key index."""
        return self._words.load(_SHARDS_WORD)

    @property
    def term(self) -> int:
        """The oldest writer's term in which a shard's marks were true: the watermark's, for `TermsFile.clamp`."""
        return self._least(_TERM)

    def shard_term(self, shard: int) -> int:
        """The writer's term in which this shard's marks were true."""
        return self._words.load(_word(shard, _TERM))

    @property
    def published_ms(self) -> int:
        """When the least mark moved last, epoch milliseconds; 0 for never."""
        return self._words.load(_TIME_WORD)

    def visible(self, shard: int) -> int:
        """Physical offset below which the shard has built everything."""
        return self._words.load(_word(shard, _VISIBLE))

    def durable(self, shard: int) -> int:
        """The same, for what would survive a power cut."""
        return self._words.load(_word(shard, _DURABLE))

    def watermark(self) -> int:
        """The least visible mark; after a reboot the least durable one. For marks of an older term: TermsFile.clamp."""
        if not self.is_of_this_boot():
            return self.durable_floor()
        return self._least(_VISIBLE)

    def durable_floor(self) -> int:
        """The least durable mark."""
        return self._least(_DURABLE)

    def _least(self, which: int) -> int:
        """Of all shards' words of a kind. Asked for each message: so it takes no call a shard but the load."""
        load = self._words.load
        return min([load(word) for word in range(_word(0, which), _word(self.shards, which), _WORDS_A_SHARD)])

    def greatest_durable(self) -> int:
        """The greatest durable mark: a shard has seen the log up to there as committed."""
        return max(self.durable(shard) for shard in range(self.shards))

    def intended(self, shard: int) -> int:
        """Where the chunk ends that the shard builds, or built last."""
        return self._words.load(_word(shard, _INTENDED))

    def intend(self, shard: int, physical_offset: int) -> None:
        """Say that a chunk up to here is about to be built."""
        self._words.store(_word(shard, _INTENDED), physical_offset)

    @property
    def is_index_synced(self) -> bool:
        """Whether everything in the key index's files is on the disk."""
        return self._words.load(_SYNCED_WORD) == 1

    def say_index_synced(self, is_synced: bool) -> None:
        """False before the first write to its files, durably; True when all of them are synced."""
        if self.is_index_synced != is_synced:
            self._words.store(_SYNCED_WORD, int(is_synced))
            self.flush()

    @property
    def alive_ms(self) -> int:
        """When a follower last said that it is there, epoch milliseconds; at most a second old while one is."""
        return self._words.load(_ALIVE_WORD)

    def say_alive(self) -> None:
        """Tell that a follower is there."""
        self._words.store(_ALIVE_WORD, time.time_ns() // 1_000_000)

    def say_gone(self) -> None:
        """Tell that no follower is there yet."""
        self._words.store(_ALIVE_WORD, 0)

    @property
    def index_file(self) -> int:
        """Name, as a number, of the newest index file that the pipeline knows: who finds it gone, or another's entries
        behind the mark, knows that a broker has run meanwhile. 0: none.
        """
        return self._words.load(_INDEX_FILE_WORD)

    def set_index_file(self, name: int) -> None:
        """Note the newest index file."""
        self._words.store(_INDEX_FILE_WORD, name)

    def set_back(self, shard: int, physical_offset: int) -> None:
        """Let a shard build again from *physical_offset* on, durably."""
        for which in (_VISIBLE, _DURABLE, _INTENDED):
            self._words.store(_word(shard, which), physical_offset)
        self.flush()

    def lower(self, shard: int, physical_offset: int) -> None:
        """No mark of the shard above *physical_offset*, durably."""
        for which in (_VISIBLE, _DURABLE):
            self._words.store(_word(shard, which), min(self._words.load(_word(shard, which)), physical_offset))
        self._words.store(_word(shard, _INTENDED), self.visible(shard))
        self.flush()

    def publish(self, shard: int, physical_offset: int) -> None:
        """Move a shard's visible mark. The caller holds the shard's lock and has built what it says.

        Where the least of all marks may have moved, whoever watches the file is told. Of shards that publish at once
        the last one sees what the others said.
        """
        before = self.visible(shard)
        self._words.store(_word(shard, _VISIBLE), physical_offset)
        with self._fence:  # an atomic operation: our store is out before theirs are read
            pass
        if any(self.visible(other) <= before for other in range(self.shards) if other != shard):
            return
        self._words.store(_TIME_WORD, time.time_ns() // 1_000_000)
        if self._file is not None:
            tell_watchers(self._file.descriptor)

    def publish_durable(self, shard: int, physical_offset: int) -> None:
        """Move a shard's durable mark, durably. The caller has synced what it says."""
        self._words.store(_word(shard, _DURABLE), physical_offset)
        self._words.flush()

    def adopt_term(self, shard: int, term: int, *, end_offset: int) -> None:
        """Take a shard over into a new term: no mark above *end_offset*, durably. Its queues are truncated already."""
        self.lower(shard, end_offset)
        self._words.store(_word(shard, _TERM), term)
        self.flush()

    def flush(self) -> None:
        """Make the words durable."""
        self._words.flush()

    def close(self) -> None:
        """Unmap."""
        self._words.close()
        self._file = None
