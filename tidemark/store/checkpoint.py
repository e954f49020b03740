"""The `checkpoint` file (docs/format.md §7): five 8-byte fields, big-endian, mapped. One owner each.

The confirm offset is the one number by which the writer tells everybody how far the log is committed.
"""

from __future__ import annotations

import enum
from pathlib import Path

from tidemark.errors import CorruptStoreError
from tidemark.store.storage import MappedWords, Storage, Words

CHECKPOINT_SIZE = 4096


class Field(enum.IntEnum):
    """Fields by number; field n lies at byte 8 n. In brackets: its owner."""

    PHYSIC_MESSAGE_TIMESTAMP = 0  # store time of the last log data known flushed [writer]
    LOGICS_MESSAGE_TIMESTAMP = 1  # of the last queue unit flushed; 0 while we run [as the next]
    INDEX_MESSAGE_TIMESTAMP = 2  # of the newest index file; 0 while we run [who holds `lock`]
    MASTER_FLUSHED_OFFSET = 3  # [nobody: replication]
    CONFIRM_PHYSICAL_OFFSET = 4  # committed_offset [writer]


def _swap(value: int) -> int:
    return int.from_bytes(value.to_bytes(8, "little"), "big")


class Checkpoint:
    """The mapped checkpoint. Values are signed in RocketMQ; none of ours is negative."""

    def __init__(self, words: Words) -> None:
        self._words = words

    @classmethod
    def open_read_only(cls, path: Path) -> Checkpoint:
        """FileNotFoundError when there is none, CorruptStoreError when it is too short."""
        if path.stat().st_size < CHECKPOINT_SIZE:
            raise CorruptStoreError(f"{path} has fewer than {CHECKPOINT_SIZE} bytes", path=str(path))
        return cls(MappedWords(path, CHECKPOINT_SIZE, writable=False))

    @classmethod
    def open_to_write(cls, path: Path, storage: Storage) -> Checkpoint:
        """Creates it, all zero, when missing."""
        return cls(storage.words(path, CHECKPOINT_SIZE))

    def get(self, field: Field) -> int:
        """A field's value."""
        return _swap(self._words.load(field))

    def set(self, field: Field, value: int) -> None:
        """One aligned 8-byte store; not durable before `flush`."""
        self._words.store(field, _swap(value))

    @property
    def committed_offset(self) -> int:
        """RocketMQ's confirm offset: exclusive end of what is committed."""
        return self.get(Field.CONFIRM_PHYSICAL_OFFSET)

    def flush(self) -> None:
        """Make all fields durable."""
        self._words.flush()

    def committed_word_address(self) -> int | None:
        """Where the committed offset's lowest four bytes lie in memory: what followers wait on."""
        address = self._words.address(Field.CONFIRM_PHYSICAL_OFFSET)
        return None if address is None else address + 4

    def close(self) -> None:
        """Unmap."""
        self._words.close()
