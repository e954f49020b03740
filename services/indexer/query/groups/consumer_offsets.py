"""Consumer offsets in `config/consumerOffset.json`, in RocketMQ's format. One process owns them; others read the file.

In a replication group the owner is beside the writer, which copies the file to the other members.

A commit is answered when it is durable. One thread writes: all commits that arrive during one write go into the next
one together, so that a commit needs no fsync of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from tidemark.errors import (
    DiskFailedError,
    DiskFullError,
    NotLeaderError,
    OffsetsFullError,
    StoreClosedError,
    StoreError,
    StoreLockedError,
)
from tidemark.replication.member_role import MemberRole
from tidemark.store.lock import FolderLock
from tidemark.store.originals.consumer_offsets import SEPARATOR, OffsetTable, load_consumer_offsets
from tidemark.store.originals.originals import RepairOutcome, querys_originals, repair
from tidemark.store.originals.topics import load_config, save_config
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage

log = structlog.get_logger()

_FULL = (errno.ENOSPC, errno.EDQUOT)


class ConsumerOffset(NamedTuple):
    """A group's offset in one queue: the next queue offset that it wants."""

    group: str
    topic: str
    queue_id: int
    offset: int


class _Commit(NamedTuple):
    """Offsets that are set together or not at all. *done* is completed when they are durable, or with the error."""

    offsets: Sequence[ConsumerOffset]
    done: Future[None]


class _TableFile:
    """Another process's consumerOffset.json, read again when it has changed; an empty table without a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._signature: tuple[int, int] | None = None
        self._table: OffsetTable = {}

    def table(self) -> OffsetTable:
        """Return the table itself, not a copy: do not change it."""
        try:
            status = os.stat(self._path)
            signature = (status.st_ino, status.st_mtime_ns)
        except FileNotFoundError:  # its owner is replacing it: the previous content is in `.bak`
            signature = (0, 0)
        if signature != self._signature:
            self._table = load_consumer_offsets(self._path)
            self._signature = signature
        return self._table


def _size(table: OffsetTable) -> int:
    return sum(map(len, table.values()))


class ConsumerOffsets:
    """Offsets of all groups of one store.

    Args:
        limit: most offsets that are kept, one per group and queue.
        topic_exists: return True for an existing topic; at the limit, offsets of other topics are dropped.
        on_owned: called when this process becomes the owner, before `is_owner` is True.
    """

    def __init__(
        self,
        paths: StorePaths,
        storage: Storage,
        *,
        limit: int = sys.maxsize,
        topic_exists: Callable[[str], bool] = lambda _: True,
        on_owned: Callable[[], None] = lambda: None,
    ) -> None:
        self._limit = limit
        self._topic_exists = topic_exists
        self._paths = paths
        self._on_owned = on_owned
        self._storage = storage
        self._lock: FolderLock | None = None
        self._changed = threading.Condition()
        self._table: OffsetTable = {}
        self._of_owner = _TableFile(paths.consumer_offsets)
        self._of_broker = _TableFile(paths.broker_consumer_offsets)
        self._pending: list[_Commit] = []
        self._counter = 0
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._role = MemberRole(paths.replication)
        self._epoch = 0  # in which this process became the owner
        self._releasing = threading.Lock()
        self._is_released = False
        with contextlib.suppress(DiskFullError):  # offsets can still be read, and the next commit reports it
            self._own()

    # -- ownership ------------------------------------------------------------------------------------------------

    @property
    def is_owner(self) -> bool:
        """True if this process writes the offsets."""
        return self._thread is not None and self._role.written_epoch() == self._epoch

    def _own(self) -> None:
        """Take the lock if it is free, and then load the file; not on a replica."""
        epoch = self._role.written_epoch()
        if epoch is None:
            return
        self._epoch = epoch
        try:
            self._storage.make_folder(self._paths.query)
            lock = self._lock or FolderLock(self._paths.query / "lock")
        except OSError as error:
            if error.errno in _FULL:
                raise DiskFullError(f"the disk is full: {error.strerror}", errno=error.errno) from error
            return  # a read-only directory
        self._lock = lock
        if lock.try_acquire():
            self._heal()
            self._table = load_consumer_offsets(self._paths.consumer_offsets)
            version = (load_config(self._paths.consumer_offsets) or {}).get("dataVersion") or {}
            self._counter = int(version.get("counter", 0))
            self._on_owned()
            self._thread = threading.Thread(target=self._write_all, name="consumer-offsets", daemon=True)
            self._thread.start()

    def _heal(self) -> None:
        """Restore the file from its checked copy if it is damaged; on a full disk the copy is read in its place."""
        for original in querys_originals(self._paths):
            try:
                done = repair(original, self._storage)
            except DiskFullError as error:
                log.warning("original_not_restored", path=str(original.path), error=error.message)
                continue
            if done.outcome is RepairOutcome.RESTORED:
                log.warning("original_restored", path=str(done.path), cause=done.cause)

    def require_owner(self) -> None:
        """Become the owner unless another process is.

        Raises:
            StoreLockedError: another process is.
            NotLeaderError: this member is a replica.
        """
        self._release_if_outdated()
        with self._changed:
            if self._stopped:
                raise StoreClosedError("the service is stopping")
            if not self.is_owner:
                self._own()
        if not self.is_owner:
            if self._role.written_epoch() is None:
                raise NotLeaderError(
                    "this member is a replica: the offsets of groups belong to the query service of the group's writer",
                    writer="",
                )
            raise StoreLockedError(
                f"another process owns the consumer offsets of this store, or {self._paths.query} cannot be written",
                path=str(self._paths.query),
            )

    def _release_if_outdated(self) -> None:
        """Stop to write, and forget all offsets, if the member has had another role since."""
        self._role.refresh()
        with self._releasing:
            if self._thread is None or self.is_owner:
                return
            with self._changed:
                self._is_released = True
                self._changed.notify()
            self._release()
            self._is_released = False

    def _release(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # -- reading --------------------------------------------------------------------------------------------------

    def all(self) -> Iterator[ConsumerOffset]:
        """Yield every offset, by group, topic and queue."""
        table = self._with_broker()
        for key in sorted(table, key=lambda key: tuple(reversed(key.partition(SEPARATOR)))):
            topic, _, group = key.partition(SEPARATOR)
            for queue_id, offset in sorted(table[key].items()):
                yield ConsumerOffset(group, topic, queue_id, offset)

    def get(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return one offset; None if the group has none."""
        key = f"{topic}{SEPARATOR}{group}"
        offset = self._current().get(key, {}).get(queue_id)
        return self._of_broker.table().get(key, {}).get(queue_id) if offset is None else offset

    def _with_broker(self) -> OffsetTable:
        """Return our own offsets, and of a broker that is attached or followed, those that have none of ours."""
        own, theirs = self._current(), self._of_broker.table()
        return {key: {**theirs.get(key, {}), **own.get(key, {})} for key in own.keys() | theirs.keys()}

    def _current(self) -> OffsetTable:
        """Return the table itself, not a copy: a write replaces the table and never changes one."""
        return self._table if self.is_owner else self._of_owner.table()

    # -- writing --------------------------------------------------------------------------------------------------

    async def put(self, *offsets: ConsumerOffset, under: AbstractContextManager[object] | None = None) -> None:
        """Set these offsets, all of them or none; they are durable when this returns.

        Args:
            under: entered while the offsets are queued, so that its check holds at their place in the order of writes.

        Raises:
            StoreLockedError: another process owns the offsets.
            DiskFullError, DiskFailedError: the write failed, and the old offsets are unchanged.
        """
        if not self.is_owner:
            await asyncio.to_thread(self.require_owner)
        with under or contextlib.nullcontext():
            done = self._enqueue(offsets)
        await asyncio.wrap_future(done)

    async def settled(self) -> None:
        """Wait until every earlier `put` is durable or has failed."""
        await asyncio.wrap_future(self._enqueue(()))

    def _enqueue(self, offsets: Sequence[ConsumerOffset]) -> Future[None]:
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()  # so that a cancelled waiter cannot make the thread's set_result fail
        with self._changed:
            if self._stopped:
                raise StoreClosedError("the service is stopping")
            self._pending.append(_Commit(offsets, done))
            self._changed.notify()
        return done

    def _write_all(self) -> None:
        while True:
            with self._changed:
                while not (self._pending or self._stopped or self._is_released):
                    self._changed.wait()
                pending, self._pending = self._pending, []
            if not pending:
                return
            self._write(pending)

    def _write(self, pending: list[_Commit]) -> None:
        table = {key: dict(queues) for key, queues in self._table.items()}
        accepted = [commit for commit in pending if self._has_room(table, commit)]
        for commit in accepted:
            for group, topic, queue_id, offset in commit.offsets:
                table.setdefault(f"{topic}{SEPARATOR}{group}", {})[queue_id] = offset
        failure = self._save_if(table, is_changed=any(commit.offsets for commit in accepted))
        for commit in accepted:
            if failure is not None and commit.offsets:
                commit.done.set_exception(failure)
            else:
                commit.done.set_result(None)

    def _has_room(self, table: OffsetTable, commit: _Commit) -> bool:
        """Return True if the offsets of *commit* fit into *table*; otherwise fail the commit."""
        keys = {(f"{one.topic}{SEPARATOR}{one.group}", one.queue_id) for one in commit.offsets}
        new = sum(queue_id not in table.get(key, {}) for key, queue_id in keys)
        if not new or _size(table) + new <= self._limit:
            return True
        self._drop_topics_that_are_gone(table)
        if _size(table) + new <= self._limit:
            return True
        commit.done.set_exception(
            OffsetsFullError(
                f"{self._limit} group offsets are stored, which is the limit: "
                "use fewer groups, or raise TIDEMARK_QUERY_MAX_OFFSETS",
                limit=self._limit,
            )
        )
        return False

    def _drop_topics_that_are_gone(self, table: OffsetTable) -> None:
        topics = {key.partition(SEPARATOR)[0] for key in table}
        gone = {topic for topic in topics if not self._topic_exists(topic)}
        for key in [key for key in table if key.partition(SEPARATOR)[0] in gone]:
            del table[key]
        if gone:
            log.info("offsets_dropped", topics=len(gone), why="the topics were deleted")

    def _save_if(self, table: OffsetTable, *, is_changed: bool) -> StoreError | None:
        """Write *table* to the file if it has changed; return the failure, after which the old table stays."""
        if not is_changed:
            return None
        try:
            self._save(table)
        except (OSError, StoreError) as error:
            if isinstance(error, StoreError):
                return error
            return DiskFailedError(f"{self._paths.consumer_offsets} cannot be written: {error}")
        self._table = table
        return None

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
        """Write the pending commits, and release the lock."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._release()
