"""FollowerDisk: the files of a store that copies a broker's log. One thread at a time uses it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from tidemark.replication.followed_broker import FollowedBroker, save_followed_broker
from tidemark.store.originals.topics import load_config, save_config
from tidemark.store.storage import replace_file

from ..log.committed_offset import PublishedOffsets
from ..log.open_store import OpenStore, close_store
from ..log.queue_offsets import QueueOffsets, Snapshot, save_snapshot
from ..log.recovery import advance, recovered_snapshot
from ..replication.replica_log import ReplicaLog
from .record_cutter import Cut, RecordCutter

_OVERLAP_BYTES = 64 << 10


class FollowerDisk:
    """The log, the published offsets and the broker's tables. It replaces the journal of the open *store*.

    tail_bytes: of the log in which record starts are kept, for a writer that opens the store next
    """

    def __init__(self, store: OpenStore, *, tail_bytes: int) -> None:
        self._store = store
        self._tail_bytes = tail_bytes
        store.storage.make_folder(store.paths.follow)
        self._published = PublishedOffsets(store.checkpoint, store.flushed)
        store.journal.close()
        self._log = ReplicaLog(store.segments, store.begin_journal, end=store.recovered.end)
        self._store_timestamp = store.recovered.store_timestamp
        self._durable_confirm = store.recovered.end
        self._numbered = recovered_snapshot(store.recovered)

    @property
    def end(self) -> int:
        """Physical offset of the log's end."""
        return self._log.end

    @property
    def is_empty(self) -> bool:
        """True if the log has no bytes."""
        return self._log.is_empty

    @property
    def synced(self) -> int:
        """Physical offset below which the log survives a power cut."""
        return self._log.synced

    @property
    def log_file_bytes(self) -> int:
        """Size of each file of the log."""
        return self._store.segments.size

    def begin_at(self, offset: int) -> None:
        """Begin the empty log where the broker's begins, which has deleted its earlier files. Raises OSError."""
        self._store.forget_snapshot()
        self._numbered = Snapshot(0, 0, QueueOffsets())
        self._log.begin_at(offset)
        self._published.flush(offset, store_timestamp=0)
        self._published.commit(offset)

    def cutter(self, least: int) -> RecordCutter:
        """Return the cutter of a new connection, which compares the end of this log with the broker's bytes.

        least: physical offset at which the broker's log begins; it sends nothing from below
        """
        end, files = self.end, self._store.segments.log
        begin = max(1, least, files.min_offset, end - _OVERLAP_BYTES) if files.starts else end
        overlap = bytearray()
        while begin + len(overlap) < end:
            at = begin + len(overlap)
            overlap += files.read(at, end - at)
        return RecordCutter(end, bytes(overlap), self.log_file_bytes)

    def apply(self, cuts: Sequence[Cut]) -> int:
        """Write, sync and publish *cuts*; return the log's end.

        Raises:
            DiskFullError, DiskFailedError: they cannot be written.
            FlushFailedError: the log must stop.
        """
        for cut in cuts:
            self._log.append_records(cut.data)
            self._store_timestamp = max(self._store_timestamp, cut.store_timestamp)
        end = self._log.sync()
        self._published.flush(end, store_timestamp=self._store_timestamp)
        self._published.commit(end)
        return end

    def save_table(self, path: Path, content: Mapping[str, Any]) -> None:
        """Save a table of the broker in the store's folder config, if it has changed."""
        if load_config(path) != content:
            self._store.storage.make_folder(path.parent)
            save_config(path, content, self._store.storage)

    def save_group_offsets(self, content: Mapping[str, Any]) -> None:
        """Save the offsets of the broker's groups, which groups of this store begin with."""
        replace_file(
            self._store.storage, self._store.paths.broker_consumer_offsets, orjson.dumps(content), keep_previous=True
        )

    def publish(self, broker: FollowedBroker) -> None:
        """Publish how the copy goes, for other processes. Without room on the disk, they see the state before."""
        with contextlib.suppress(OSError):
            save_followed_broker(self._store.paths.follow, broker)

    def save_queue_offsets(self) -> None:
        """Save the next offset of each queue as of the log's end, without which no old file may be deleted."""
        save_snapshot(self._store.snapshot_path, self._queue_offsets(self._log.synced), self._store.storage)

    def _queue_offsets(self, end: int) -> Snapshot:
        """Return the next offset of each queue when the log ended at *end*, from the last saved ones and the log.

        A log without bytes may have no file yet, and a start refuses queue offsets of a position without files.
        """
        if self._log.is_empty:
            return self._numbered
        self._numbered = advance(self._numbered, self._store.segments.log, end, tail_bytes=self._tail_bytes)
        return self._numbered

    def make_confirm_durable(self) -> None:
        """Sync the committed offset if it has moved."""
        if self.end > self._durable_confirm:
            self._durable_confirm = self.end
            self._store.make_committed_durable()

    def close(self) -> None:
        """Sync the log, and close the store as a writer does, so that a writer or a broker can open it next."""
        end = self._log.sync()
        self._log.close()
        close_store(self._store, self._queue_offsets(end))
