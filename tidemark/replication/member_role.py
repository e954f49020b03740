"""The role of a member of a group, for programs beside its writer service: a file of mapped words.

Mapped words, native:  word 0  magic and version · word 1  epoch in which this member is the writer; 0 for a replica ·
word 2  physical offset at which that epoch began · word 3  time until which the writer's lease is held, milliseconds
since the machine's start · word 4  hash of the machine's boot id
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path

from tidemark.store.originals.terms import machine_boot_id
from tidemark.store.storage import MappedWords, Storage

ROLE = "role"
ALONE = 0
_SIZE = 4096
_MAGIC = int.from_bytes(b"TIDEROL1", sys.byteorder)
_MAGIC_WORD, _EPOCH_WORD, _START_WORD, _UNTIL_WORD, _BOOT_WORD = range(5)
_FOREVER_MS = (1 << 63) - 1


class PublishedRole:
    """The file in *folder*, `tidemark/replication` of the store, for the writer service. At first, a replica's."""

    def __init__(self, folder: Path, storage: Storage) -> None:
        storage.make_folder(folder)
        self._words = storage.words(folder / ROLE, _SIZE)
        self.follow()
        self._words.store(_BOOT_WORD, _boot())
        self._words.store(_MAGIC_WORD, _MAGIC)

    def write(self, epoch: int, start: int, *, until_s: float | None) -> None:
        """Publish that this member is the writer of *epoch*, whose first byte is at physical offset *start*.

        until_s: end of its lease, as `extend` has it; None if it has none.
        """
        self.follow()
        self._words.store(_START_WORD, start)
        self._words.store(_UNTIL_WORD, _FOREVER_MS if until_s is None else int(until_s * 1000))
        self._words.store(_EPOCH_WORD, epoch)

    def extend(self, until_s: float) -> None:
        """Publish that the lease is held until *until_s*, seconds since the machine's start."""
        self._words.store(_UNTIL_WORD, int(until_s * 1000))

    def follow(self) -> None:
        """Publish that this member is a replica."""
        self._words.store(_EPOCH_WORD, 0)

    def close(self) -> None:
        """Publish that this member is a replica, and unmap the file."""
        self.follow()
        self._words.close()


class MemberRole:
    """The role of the member with *folder*, as its writer service publishes it. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ROLE
        self._words: MappedWords | None = None
        self._boot = _boot()
        self.refresh()

    def refresh(self) -> None:
        """Notice that the store has become a member's."""
        if self._words is None:
            try:
                if os.stat(self._path).st_size < _SIZE:
                    return
                words = MappedWords(self._path, _SIZE, writable=False)
                if words.load(_MAGIC_WORD) == _MAGIC:
                    self._words = words
            except FileNotFoundError:
                return

    def written_epoch(self) -> int | None:
        """Return the epoch in which this member is the writer; None for a replica, 0 for a store without replication.

        Without a lease, another member may have become the writer since, of which this one has not heard.
        """
        words = self._words
        if words is None:
            return ALONE
        epoch = words.load(_EPOCH_WORD)
        is_held = words.load(_BOOT_WORD) == self._boot and words.load(_UNTIL_WORD) > _now_ms()
        return epoch if epoch and is_held else None

    def committed_below(self) -> int:
        """Return a physical offset below which all bytes that the group has committed lie, as far as is known here.

        The next writer of a group learns only from its replicas that bytes of an earlier epoch were committed. A
        replica never knows how much is committed elsewhere.
        """
        epoch = self.written_epoch()
        if epoch is None:
            return sys.maxsize
        return 0 if epoch == ALONE or self._words is None else self._words.load(_START_WORD)


def _boot() -> int:
    return int.from_bytes(hashlib.sha256(machine_boot_id().encode()).digest()[:8], "big")


def _now_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
