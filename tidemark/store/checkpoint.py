"""The mapped `checkpoint` file (docs/format.md §7): five 8-byte fields, big-endian, with one owner each.

By the confirm offset, the writer publishes to all other processes how far the log is committed.
"""

from __future__ import annotations

import enum
from pathlib import Path

from tidemark.errors import CorruptStoreError
from tidemark.store.storage import MappedWords, Storage, Words

CHECKPOINT_SIZE = 4096


class Field(enum.IntEnum):
    """Fields by number; field n is at byte 8 n. In brackets: its owner."""

    PHYSIC_MESSAGE_TIMESTAMP = 0  # store timestamp of the last flushed log data [writer]
    LOGICS_MESSAGE_TIMESTAMP = 1  # of the last flushed queue unit; 0 while Tidemark runs [as the next]
    INDEX_MESSAGE_TIMESTAMP = 2  # of the newest index file; 0 while Tidemark runs [the holder of `lock`]
    MASTER_FLUSHED_OFFSET = 3  # replication [unused]
    CONFIRM_PHYSICAL_OFFSET = 4  # committed_offset [writer]


_COMMITTED = int(Field.CONFIRM_PHYSICAL_OFFSET)


def _swap(value: int) -> int:
    return int.from_bytes(value.to_bytes(8, "little"), "big")


class Checkpoint:
    """The mapped checkpoint. RocketMQ's values are signed; Tidemark writes no negative one."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._committed = (0, 0)  # the last loaded word of the committed offset, and its value

    @classmethod
    def open_read_only(cls, path: Path) -> Checkpoint:
        """Map the file for reads. FileNotFoundError: it is missing; CorruptStoreError: it is too short."""
        if path.stat().st_size < CHECKPOINT_SIZE:
            raise CorruptStoreError(f"{path} has fewer than {CHECKPOINT_SIZE} bytes", path=str(path))
        return cls(MappedWords(path, CHECKPOINT_SIZE, writable=False))

    @classmethod
    def open_to_write(cls, path: Path, storage: Storage) -> Checkpoint:
        """Map the file for writes. A missing file is created, all zero."""
        return cls(storage.words(path, CHECKPOINT_SIZE))

    def get(self, field: Field) -> int:
        """Return a field's value."""
        return _swap(self._words.load(field))

    def set(self, field: Field, value: int) -> None:
        """Set a field with one aligned 8-byte store. It is not durable before `flush`."""
        self._words.store(field, _swap(value))

    @property
    def committed_offset(self) -> int:
        """RocketMQ's confirm offset: the exclusive end of the committed log."""
        word = self._words.load(_COMMITTED)
        known, value = self._committed
        if word != known:
            value = _swap(word)
            self._committed = word, value  # one assignment: several threads may read
        return value

    def flush(self) -> None:
        """Make all fields durable."""
        self._words.flush()

    def committed_word_address(self) -> int | None:
        """Return the memory address of the committed offset's low four bytes, on which followers wait."""
        address = self._words.address(Field.CONFIRM_PHYSICAL_OFFSET)
        return None if address is None else address + 4

    def close(self) -> None:
        """Unmap the file."""
        self._words.close()
