"""OpenStore: everything of a store that the writer opens, in the order it must be opened and closed.

Open: lock, recovery, new term, `abort`. Close, when clean: queue offsets, confirm offset, unused file, our clean flag;
`abort` goes only when the pipeline has built everything (a broker would trust its queues then).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import structlog

from tidemark.errors import CorruptStoreError, DiskFullError, StoreContradictionError
from tidemark.store.batch_journal import encode_abort, new_token
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.flushed import Flushed
from tidemark.store.lock import StoreLock
from tidemark.store.mapped_file_queue import MappedFileQueue, size_on_disk
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage, replace_file
from tidemark.store.terms import Term, begin_term

from .config import FlushMode, WriterSettings
from .journal import BatchJournal
from .queue_offsets import Snapshot, save_snapshot
from .recover import Recovered, lower_tombstones, recover, sync_files
from .segments import Segments

log = structlog.get_logger()

_TOLD_DAMAGES = 100


class OpenStore(NamedTuple):
    """An opened store."""

    paths: StorePaths
    storage: Storage
    lock: StoreLock
    segments: Segments
    checkpoint: Checkpoint
    flushed: Flushed
    journal: BatchJournal
    recovered: Recovered
    term: Term
    commits_ahead: bool  # flush mode async: the committed offset may be ahead of the flushed one

    def make_committed_durable(self) -> None:
        """Sync the committed offset; and, where it runs ahead of it, the flushed one."""
        self.checkpoint.flush()
        if self.commits_ahead:
            self.flushed.flush()

    @property
    def snapshot_path(self) -> Path:
        """Where the queue offsets are kept."""
        return self.paths.writer / "queue_offsets"


def segment_size(settings: WriterSettings, paths: StorePaths) -> int:
    """Existing files decide; StoreContradictionError when the setting was given and says otherwise."""
    setting = settings.commit_log_segment_size_bytes
    existing = size_on_disk(paths.commit_log)
    if existing is None:
        return setting
    if "commit_log_segment_size_bytes" in settings.model_fields_set and existing != setting:
        raise StoreContradictionError(
            f"the CommitLog's files have {existing} bytes, commit_log_segment_size_bytes says {setting}",
            path=str(paths.commit_log),
            setting="commit_log_segment_size_bytes",
        )
    return existing


def open_store(settings: WriterSettings, storage: Storage) -> OpenStore:
    """Lock, recover and begin a term.

    raises StoreLockedError, StoreContradictionError, CorruptStoreError (a foreign file), FlushFailedError
    """
    paths = StorePaths(settings.store_root.resolve())
    for folder in (paths.writer, paths.commit_log):
        storage.make_folder(folder)
    lock = StoreLock(paths.lock)
    try:
        was_clean = _take_clean_flag(paths, storage)
        segments = Segments(MappedFileQueue(paths.commit_log, segment_size(settings, paths), storage))
        recovered = recover(paths, segments, rebuild_bytes=settings.idempotence_rebuild_bytes)
        sync_files(segments, recovered)
        lower_tombstones(paths, recovered.end, storage)
        checkpoint = Checkpoint.open_to_write(paths.checkpoint, storage)
        checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, recovered.end)
        checkpoint.flush()
        term = begin_term(paths.terms, recovered.end, storage)  # from here on marks of what was cut do not count
        commits_ahead = settings.flush_mode is FlushMode.ASYNC
        flushed = Flushed.open_to_write(
            paths.flushed, storage, flushed_offset=recovered.end, commits_ahead=commits_ahead
        )
        token = _mark_running(paths, storage)
        journal = BatchJournal(paths.writer / "batches", storage, token=token, start=recovered.end)
    except BaseException:
        lock.release()
        raise
    _tell(recovered, term, was_clean=was_clean)
    return OpenStore(paths, storage, lock, segments, checkpoint, flushed, journal, recovered, term, commits_ahead)


def close_store(store: OpenStore, snapshot: Snapshot) -> None:
    """Leave a store that the next start finds clean. Everything is synced already.

    On a full disk the flag is missing, and the next start scans as after a crash.
    """
    try:
        store.segments.drop_unused(snapshot.position)
        store.checkpoint.flush()
        store.flushed.flush()
        save_snapshot(store.snapshot_path, snapshot, store.storage)
        if _is_built_to(store.paths, snapshot.position):
            store.storage.unlink(store.paths.abort)
        replace_file(store.storage, store.paths.writer / "clean", b"%d\n" % snapshot.position, keep_previous=False)
    except DiskFullError as error:
        log.warning("stop_not_clean", error=error.message)
    finally:
        release_store(store)


def release_store(store: OpenStore) -> None:
    """Let go of everything, as it is."""
    store.segments.log.close()
    store.journal.close()
    store.checkpoint.close()
    store.flushed.close()
    store.lock.release()


def _take_clean_flag(paths: StorePaths, storage: Storage) -> bool:
    flag = paths.writer / "clean"
    was_clean = flag.exists()
    storage.unlink(flag)
    return was_clean


def _mark_running(paths: StorePaths, storage: Storage) -> bytes:
    """RocketMQ's `abort`, durably; the token of this run, which is in it."""
    token = new_token()
    if paths.abort.exists():
        storage.unlink(paths.abort)
    descriptor = storage.create(paths.abort, 0)
    try:
        storage.pwrite(descriptor, encode_abort(token), 0)
        storage.fdatasync(descriptor)
    finally:
        os.close(descriptor)
    return token


def _is_built_to(paths: StorePaths, end: int) -> bool:
    """Whether every shard of the pipeline, the key index too, has durably built all of the log."""
    try:
        marks = Marks.open_read_only(paths.marks)
    except (FileNotFoundError, CorruptStoreError):
        return False
    try:
        return marks.durable_floor() == end == marks.greatest_durable()
    finally:
        marks.close()


def _tell(recovered: Recovered, term: Term, *, was_clean: bool) -> None:
    for damage in recovered.damages[:_TOLD_DAMAGES]:
        log.warning("damage_found", physical_offset=damage.physical_offset, size=damage.size, reason=damage.reason)
    log.info(
        "store_recovered",
        term=term.number,
        recovered_end=recovered.end,
        durable_floor=recovered.floor,
        scanned_from=recovered.scanned_from,
        queues=len(recovered.offsets),
        damages=len(recovered.damages),
        was_clean=was_clean,
    )
