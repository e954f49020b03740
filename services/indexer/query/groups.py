"""Consumer offsets in `config/consumerOffset.json`, in RocketMQ's form. One process owns them; others read the file.

An offset is answered when it is durable. One thread writes: what came in while it wrote the last file goes into the
next one together, so a PUT costs no fsync of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

from tidemark.errors import DiskFailedError, DiskFullError, StoreClosedError, StoreError, StoreLockedError
from tidemark.store.consumer_offsets import SEPARATOR, OffsetTable, load_consumer_offsets
from tidemark.store.lock import FolderLock
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage
from tidemark.store.topics import load_config, save_config

_FULL = (errno.ENOSPC, errno.EDQUOT)


class ConsumerOffset(NamedTuple):
    """Where a group goes on in one queue: the next queue offset it wants."""

    group: str
    topic: str
    queue_id: int
    offset: int


class _TableFile:
    """Somebody else's consumerOffset.json, read again when it has changed; empty for None."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._signature: tuple[int, int] | None = None
        self._table: OffsetTable = {}

    def table(self) -> OffsetTable:
        """Not a copy: do not change it."""
        if self._path is None:
            return self._table
        try:
            status = os.stat(self._path)
            signature = (status.st_ino, status.st_mtime_ns)
        except FileNotFoundError:  # its owner is replacing it: the previous content is in `.bak`
            signature = (0, 0)
        if signature != self._signature:
            self._table = load_consumer_offsets(self._path)
            self._signature = signature
        return self._table


class ConsumerOffsets:
    """Offsets of all groups of one store."""

    def __init__(self, paths: StorePaths, storage: Storage) -> None:
        self._paths = paths
        self._storage = storage
        self._lock: FolderLock | None = None
        self._changed = threading.Condition()
        self._table: OffsetTable = {}
        self._of_owner = _TableFile(paths.consumer_offsets)
        self._of_broker = _TableFile(paths.broker_consumer_offsets)
        self._pending: list[tuple[ConsumerOffset, Future[None]]] = []
        self._counter = 0
        self._stopped = False
        self._thread: threading.Thread | None = None
        with contextlib.suppress(DiskFullError):  # it may still be read; a PUT tells
            self._own()

    # -- who owns them --------------------------------------------------------------------------------------------

    @property
    def is_owner(self) -> bool:
        """Whether this process writes them."""
        return self._thread is not None

    def _own(self) -> None:
        """Take the lock if it is free, and the file as it is then."""
        try:
            self._storage.make_folder(self._paths.query)
            lock = self._lock or FolderLock(self._paths.query / "lock")
        except OSError as error:
            if error.errno in _FULL:
                raise DiskFullError(f"the disk is full: {error.strerror}", errno=error.errno) from error
            return  # a read-only directory
        self._lock = lock
        if lock.try_acquire():
            self._table = load_consumer_offsets(self._paths.consumer_offsets)
            version = (load_config(self._paths.consumer_offsets) or {}).get("dataVersion") or {}
            self._counter = int(version.get("counter", 0))
            self._thread = threading.Thread(target=self._write_all, name="consumer-offsets", daemon=True)
            self._thread.start()

    def _require_owner(self) -> None:
        with self._changed:
            if not self.is_owner:
                self._own()
        if not self.is_owner:
            raise StoreLockedError(
                "another process keeps the consumer offsets of this store, or its folder cannot be written",
                path=str(self._paths.query),
            )

    # -- reading --------------------------------------------------------------------------------------------------

    def all(self) -> Iterator[ConsumerOffset]:
        """Every offset, by group, topic and queue."""
        table = self._with_broker()
        for key in sorted(table, key=lambda key: tuple(reversed(key.partition(SEPARATOR)))):
            topic, _, group = key.partition(SEPARATOR)
            for queue_id, offset in sorted(table[key].items()):
                yield ConsumerOffset(group, topic, queue_id, offset)

    def get(self, group: str, topic: str, queue_id: int) -> int | None:
        """One offset; None where the group has none."""
        return self._with_broker().get(f"{topic}{SEPARATOR}{group}", {}).get(queue_id)

    def _with_broker(self) -> OffsetTable:
        """Ours; of an attached store also the broker's, where a group has set none here."""
        own, theirs = self._current(), self._of_broker.table()
        return {key: {**theirs.get(key, {}), **own.get(key, {})} for key in own.keys() | theirs.keys()}

    def _current(self) -> OffsetTable:
        if self.is_owner:
            with self._changed:
                return {key: dict(queues) for key, queues in self._table.items()}
        return self._of_owner.table()

    # -- writing --------------------------------------------------------------------------------------------------

    async def put(self, offset: ConsumerOffset) -> None:
        """Set one offset; durable when this returns.

        raises StoreLockedError when another process owns them; DiskFullError, DiskFailedError: the old one holds
        """
        if not self.is_owner:
            await asyncio.to_thread(self._require_owner)
        done: Future[None] = Future()
        with self._changed:
            if self._stopped:
                raise StoreClosedError("the service is stopping")
            self._pending.append((offset, done))
            self._changed.notify()
        await asyncio.wrap_future(done)

    def _write_all(self) -> None:
        while True:
            with self._changed:
                while not self._pending and not self._stopped:
                    self._changed.wait()
                pending, self._pending = self._pending, []
            if not pending:
                return
            self._write(pending)

    def _write(self, pending: list[tuple[ConsumerOffset, Future[None]]]) -> None:
        table = {key: dict(queues) for key, queues in self._table.items()}
        for (group, topic, queue_id, offset), _ in pending:
            table.setdefault(f"{topic}{SEPARATOR}{group}", {})[queue_id] = offset
        try:
            self._save(table)
        except (OSError, StoreError) as error:
            failure = error if isinstance(error, StoreError) else DiskFailedError(f"cannot be written: {error}")
            for _, done in pending:
                done.set_exception(failure)
            return
        with self._changed:
            self._table = table
        for _, done in pending:
            done.set_result(None)

    def _save(self, table: OffsetTable) -> None:
        self._counter += 1
        version = {"counter": self._counter, "stateVersion": 0, "timestamp": time.time_ns() // 1_000_000}
        content: dict[str, Any] = {
            "dataVersion": version,
            "offsetTable": {
                key: {str(queue_id): offset for queue_id, offset in sorted(queues.items())}
                for key, queues in sorted(table.items())
            },
        }
        save_config(self._paths.consumer_offsets, content, self._storage)

    def close(self) -> None:
        """Write what is pending and let go."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None
