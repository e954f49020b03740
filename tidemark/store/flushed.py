"""`tidemark/writer/flushed`: the synced end of the log, and whether commits may exceed it (docs/format.md §8).

Mapped words, native:  word 0  magic and version · word 1  flushed offset, exclusive end · word 2  1 if commits may
exceed it (flush mode `async`), otherwise 0

In `async` mode the confirm offset and the pipeline's marks may be ahead of the log that survives a power cut. The
flushed offset never is, because it is stored after the fdatasync of the log up to there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark.store.storage import MappedWords, Storage, Words

FLUSHED_SIZE = 4096
_MAGIC = int.from_bytes(b"TIDEFLS1", sys.byteorder)
_MAGIC_WORD, _OFFSET_WORD, _AHEAD_WORD = range(3)


class Flushed:
    """The mapped file, for its owner, the writer."""

    def __init__(self, words: Words) -> None:
        self._words = words

    @classmethod
    def open_to_write(cls, path: Path, storage: Storage, *, flushed_offset: int, commits_ahead: bool) -> Flushed:
        """Open the file for a writer whose log is synced up to *flushed_offset* at its start. Durable on return."""
        flushed = cls(storage.words(path, FLUSHED_SIZE))
        flushed.set(flushed_offset)
        flushed._words.store(_AHEAD_WORD, int(commits_ahead))
        flushed._words.store(_MAGIC_WORD, _MAGIC)
        flushed.flush()
        return flushed

    def set(self, flushed_offset: int) -> None:
        """Store the offset up to which the log is synced. The number itself is not durable before `flush`."""
        self._words.store(_OFFSET_WORD, flushed_offset)

    def flush(self) -> None:
        """Make the number durable."""
        self._words.flush()

    def close(self) -> None:
        """Unmap the file."""
        self._words.close()


def read_flushed_offset(path: Path) -> int | None:
    """Return the last writer's flushed offset; None without one. Exact only until the machine restarts."""
    return _read(path)[0]


def read_floor_of_async(path: Path) -> int | None:
    """Return the flushed offset if the last writer's commits may exceed it; otherwise None."""
    offset, is_ahead = _read(path)
    return offset if is_ahead else None


def commits_ahead(path: Path) -> bool | None:
    """Return True if the last writer's commits may exceed its syncs (flush mode `async`); None without a writer."""
    offset, is_ahead = _read(path)
    return None if offset is None else is_ahead


def _read(path: Path) -> tuple[int | None, bool]:
    try:
        if path.stat().st_size < FLUSHED_SIZE:
            return None, False
        words = MappedWords(path, FLUSHED_SIZE, writable=False)
    except FileNotFoundError:
        return None, False
    try:
        if words.load(_MAGIC_WORD) != _MAGIC:
            return None, False
        return words.load(_OFFSET_WORD), bool(words.load(_AHEAD_WORD))
    finally:
        words.close()
