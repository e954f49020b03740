"""`tidemark/writer/flushed`: how far the log is synced, and whether commits run ahead of that (docs/format.md §8).

Mapped words, native:  word 0  magic and version · word 1  flushed offset, exclusive end · word 2  1 where commits may
run ahead of it (flush mode `async`), else 0

In `async` mode the confirm offset and the pipeline's marks may be ahead of the log that survives a power cut. This
number never is: it is stored after the fdatasync that it tells of.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark.store.storage import MappedWords, Storage, Words

FLUSHED_SIZE = 4096
_MAGIC = int.from_bytes(b"TIDEFLS1", sys.byteorder)
_MAGIC_WORD, _OFFSET_WORD, _AHEAD_WORD = range(3)


class Flushed:
    """The mapped number, for its owner, the writer."""

    def __init__(self, words: Words) -> None:
        self._words = words

    @classmethod
    def open_to_write(cls, path: Path, storage: Storage, *, flushed_offset: int, commits_ahead: bool) -> Flushed:
        """The file for a life of the writer that begins at *flushed_offset*, all of it synced. Durable on return."""
        flushed = cls(storage.words(path, FLUSHED_SIZE))
        flushed.set(flushed_offset)
        flushed._words.store(_AHEAD_WORD, int(commits_ahead))
        flushed._words.store(_MAGIC_WORD, _MAGIC)
        flushed.flush()
        return flushed

    def set(self, flushed_offset: int) -> None:
        """The log is synced up to here; not durable itself before `flush`."""
        self._words.store(_OFFSET_WORD, flushed_offset)

    def flush(self) -> None:
        """Make the number durable."""
        self._words.flush()

    def close(self) -> None:
        """Unmap."""
        self._words.close()


def read_flushed_offset(path: Path) -> int | None:
    """What the last writer said; None when there was none. Exact only in the boot of the machine it ran in."""
    return _read(path)[0]


def read_floor_of_async(path: Path) -> int | None:
    """The flushed offset of a writer that committed ahead of it; None where the committed offset is as good."""
    offset, is_ahead = _read(path)
    return offset if is_ahead else None


def commits_ahead(path: Path) -> bool | None:
    """Whether the last writer's commits may run ahead of its syncs: flush mode `async`. None when there was none."""
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
