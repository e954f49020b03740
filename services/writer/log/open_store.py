"""OpenStore: the parts of a store that the writer opens, and the order in which they are opened and closed.

Open: lock, recovery, new term, `abort`. Clean close: unused file, confirm offset, queue offsets, Tidemark's clean flag.
`abort` is removed only if the pipeline has built everything, because without it a broker trusts the queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import structlog

from tidemark.errors import DiskFullError, StoreContradictionError
from tidemark.index.broker_trust import give_trust, mark_running, withdraw_trust
from tidemark.replication.member_files import STATE, MemberFiles
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.flushed import Flushed
from tidemark.store.lock import StoreLock
from tidemark.store.multi_path_mapped_file_queue import log_size_on_disk, open_log
from tidemark.store.originals.checked_copy import copy_path
from tidemark.store.originals.format_file import require_known_format, write_format
from tidemark.store.originals.originals import OriginalFile, RepairOutcome, repair, writers_originals
from tidemark.store.originals.terms import Term, begin_term
from tidemark.store.originals.topics import load_topics
from tidemark.store.paths import StorePaths
from tidemark.store.safety import require_safe_store
from tidemark.store.storage import Storage, replace_file

from ..config import FlushMode, WriterSettings
from .batch_journal import BatchJournal
from .disk_guard import free_bytes
from .queue_offsets import Snapshot, load_snapshot, save_snapshot
from .recovery import Recovered, lower_tombstones, recover, sync_files
from .segments import Segments

log = structlog.get_logger()

_LOGGED_DAMAGES = 100


class OpenStore(NamedTuple):
    """An open store."""

    paths: StorePaths
    storage: Storage
    lock: StoreLock
    segments: Segments
    checkpoint: Checkpoint
    flushed: Flushed
    journal: BatchJournal
    recovered: Recovered
    term: Term
    token: bytes  # of this run, in `abort` and in the journal
    commits_ahead: bool  # flush mode async: the committed offset may be ahead of the flushed one

    def make_committed_durable(self) -> None:
        """Sync the committed offset, and the flushed offset if the committed one may be ahead of it."""
        self.checkpoint.flush()
        if self.commits_ahead:
            self.flushed.flush()

    def free_bytes(self, root: Path) -> int:
        """Return the least free space of the disks that an append needs: of *root* and of the newest log files."""
        log = self.segments.log
        return min(map(free_bytes, {root, *(log.folder_of(start) for start in log.starts[-2:])}))

    def begin_journal(self, end: int) -> BatchJournal:
        """Replace the journal of this run by a new one, for a log that ends at physical offset *end*."""
        return BatchJournal(self.paths.writer / "batches", self.storage, token=self.token, start=end)

    @property
    def snapshot_path(self) -> Path:
        """The file of the queue offsets."""
        return self.paths.writer / "queue_offsets"

    def forget_snapshot(self) -> None:
        """Remove the saved queue offsets, and their copies."""
        path = self.snapshot_path
        for one in (copy_path(path), path, path.with_name(f"{path.name}.bak")):
            if one is not None and one.exists():
                self.storage.unlink(one)


def segment_size(settings: WriterSettings, paths: StorePaths) -> int:
    """Return the size of the existing CommitLog files, or the setting if there are none.

    Raises StoreContradictionError if the setting was given and differs from the existing files.
    """
    setting = settings.commit_log_segment_size_bytes
    existing = log_size_on_disk(paths.log_folders)
    if existing is None:
        return setting
    if "commit_log_segment_size_bytes" in settings.model_fields_set and existing != setting:
        raise StoreContradictionError(
            f"commit_log_segment_size_bytes is {setting}, but the existing CommitLog files have {existing} bytes: "
            "remove the setting or set it to that size",
            path=str(paths.log_folders.all[0]),
            setting="commit_log_segment_size_bytes",
        )
    return existing


def open_store(settings: WriterSettings, storage: Storage) -> OpenStore:
    """Lock the store, recover it and begin a term.

    Raises StoreLockedError, StoreContradictionError (also if the log is missing), StoreTooNewError, StoreUnsafeError,
    CorruptStoreError (a foreign file) or FlushFailedError.
    """
    root = settings.store_root.resolve()
    paths = StorePaths(root, settings.log_folders(root))
    require_known_format(paths)
    require_safe_store(paths, with_queues=False)
    _require_same_role(settings, paths)
    for folder in (paths.writer, *paths.log_folders.writable):
        storage.make_folder(folder)
    lock = StoreLock(paths.lock)
    try:
        heal_originals(writers_originals(paths), storage)
        load_topics(paths.topics)  # an unreadable file is reported before a term begins
        write_format(paths, storage)
        segments = _open_segments(settings, paths, storage)
        was_clean = _take_clean_flag(paths, storage)
        recovered = recover(
            paths,
            segments,
            rebuild_bytes=_rebuild_bytes(settings, paths, storage),
            tail_bytes=settings.idempotence_rebuild_bytes,
        )
        sync_files(paths, segments, recovered, storage)
        lower_tombstones(paths, recovered.end, storage)
        withdraw_trust(paths, storage)
        checkpoint = Checkpoint.open_to_write(paths.checkpoint, storage)
        confirmed = recovered.end
        if settings.is_replicated:  # of the tail only the group knows whether it is committed
            confirmed = min(recovered.floor, recovered.end)
        checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, confirmed)
        checkpoint.flush()
        term = begin_term(paths.terms, recovered.end, storage)  # from now on, marks above the cut end are ignored
        commits_ahead = settings.flush_mode is FlushMode.ASYNC
        flushed = Flushed.open_to_write(
            paths.flushed, storage, flushed_offset=recovered.end, commits_ahead=commits_ahead
        )
        token = mark_running(paths, storage)
        journal = BatchJournal(paths.writer / "batches", storage, token=token, start=recovered.end)
    except BaseException:
        lock.release()
        raise
    _log_recovery(recovered, term, was_clean=was_clean)
    return OpenStore(
        paths, storage, lock, segments, checkpoint, flushed, journal, recovered, term, token, commits_ahead
    )


def _rebuild_bytes(settings: WriterSettings, paths: StorePaths, storage: Storage) -> int:
    """Return how much of the log recovery reads to recognise repeats: a replica gets none."""
    is_replica = settings.is_replicated and not MemberFiles(paths.replication, storage).names_this_member()
    return 0 if is_replica else settings.idempotence_rebuild_bytes


def _require_same_role(settings: WriterSettings, paths: StorePaths) -> None:
    if not settings.is_replicated and (paths.replication / STATE).exists():
        raise StoreContradictionError(
            f"{paths.root} belongs to a member of a replication group, so its log may end with uncommitted messages: "
            "set TIDEMARK_REPLICATION, or remove the folder tidemark/replication to make it a store of its own",
            path=str(paths.replication),
            setting="replication",
        )


def heal_originals(originals: Sequence[OriginalFile], storage: Storage) -> None:
    """Restore damaged files from their checked copies, and log that; a file without a checked copy gets one.

    If file and copy are both damaged, nothing is restored, and the reader of the file raises. On a full disk nothing is
    restored either, and readers use the sound one of the two.
    """
    for original in originals:
        try:
            done = repair(original, storage)
        except DiskFullError as error:
            log.warning("original_not_restored", path=str(original.path), error=error.message)
            continue
        if done.outcome is RepairOutcome.RESTORED:
            log.warning("original_restored", path=str(done.path), cause=done.cause)
        elif done.outcome is RepairOutcome.CHANGED:
            log.info("original_changed_by_others", path=str(done.path))


def _open_segments(settings: WriterSettings, paths: StorePaths, storage: Storage) -> Segments:
    size = segment_size(settings, paths)

    def is_full(folder: Path) -> bool:
        return free_bytes(folder) < settings.min_free_disk_bytes + size

    log = open_log(paths.log_folders, size, storage, is_full=is_full)
    snapshot = load_snapshot(paths.writer / "queue_offsets")
    if not log.starts and snapshot is not None and snapshot.position > 0:
        folders = ", ".join(map(str, paths.log_folders.all))
        raise StoreContradictionError(  # with an empty log, queue offsets would start at 0 again
            f"the store has queue offsets up to physical offset {snapshot.position}, but there are no CommitLog files "
            f"in {folders}: set commit_log_paths to their folders",
            path=folders,
            setting="commit_log_paths",
        )
    return Segments(log)


def close_store(store: OpenStore, snapshot: Snapshot) -> None:
    """Close the store so that the next start finds it clean. The log must be synced already.

    On a full disk the clean flag is not written, and the next start scans as after a crash.
    """
    try:
        store.segments.drop_unused(snapshot.position)
        store.checkpoint.flush()
        store.flushed.flush()
        save_snapshot(store.snapshot_path, snapshot, store.storage)
        give_trust(store.paths, snapshot.position, store_timestamp=snapshot.store_timestamp, storage=store.storage)
        replace_file(store.storage, store.paths.writer / "clean", b"%d\n" % snapshot.position, keep_previous=False)
    except DiskFullError as error:
        log.warning("stop_not_clean", error=error.message)
    finally:
        release_store(store)


def release_store(store: OpenStore) -> None:
    """Close all files and release the lock, without saving anything."""
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


def _log_recovery(recovered: Recovered, term: Term, *, was_clean: bool) -> None:
    for damage in recovered.damages[:_LOGGED_DAMAGES]:
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
