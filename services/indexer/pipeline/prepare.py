"""Preparation for the first epoch: lock the indexer's folder, inspect its files, and correct the marks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidemark.errors import StoreContradictionError
from tidemark.index.broker_trust import give_trust, last_store_timestamp, mark_running, withdraw_trust
from tidemark.index.key_index import KeyIndex
from tidemark.index.truncate import truncate_queue
from tidemark.store.lease import Lease
from tidemark.store.lock import FolderLock, StoreLock, lock_holder
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.marks import Marks
from tidemark.store.storage import Storage

from .plan import EpochPlan
from .shards.index_cut import cut_index
from .shards.rebuilding import set_aside_damaged_files, set_aside_damaged_marks


@contextmanager
def own_indexer(plan: EpochPlan, storage: Storage) -> Iterator[None]:
    """Hold the indexer's lock. StoreLockedError: another pipeline runs on this store."""
    storage.make_folder(plan.paths.indexer)
    lock = FolderLock(plan.paths.indexer / "lock")
    lock.require()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def own_log_without_writer(plan: EpochPlan) -> Iterator[bool]:
    """Hold RocketMQ's lock if no writer does and yield True; otherwise hold nothing and yield False."""
    if lock_holder(plan.paths.lock) is not None:
        yield False
        return
    lock = StoreLock(plan.paths.lock)
    try:
        yield True
    finally:
        lock.release()


def withdraw_trust_without_writer(plan: EpochPlan, storage: Storage) -> bool:
    """Zero the checkpoint's times and make sure that `abort` exists: a broker must not trust partly built files.

    The caller holds RocketMQ's lock in the writer's place. Return True if a broker would have trusted the store until
    now: it may again when everything is built (`give_trust_back`).
    """
    was_trusted = not plan.paths.abort.exists()
    withdraw_trust(plan.paths, storage)
    if was_trusted:
        mark_running(plan.paths, storage)
    return was_trusted


def give_trust_back(plan: EpochPlan, storage: Storage) -> None:
    """Let a broker trust the store again. Everything is built."""
    assert plan.limit is not None, "the holder of the log's lock knows its end"
    log = plan.open_log()
    store_timestamp = last_store_timestamp(log, plan.limit)
    log.close()
    give_trust(plan.paths, plan.limit, store_timestamp=store_timestamp, storage=storage)


def prepare(plan: EpochPlan, storage: Storage) -> None:
    """Make marks, folders and index consistent. This holds every shard's lock, so no task builds meanwhile."""
    _require_queue_files(plan)
    shards = range(plan.all_shards)
    held: list[FolderLock | Lease] = [plan.lock(plan.lock_path(shard)) for shard in shards]
    held += [FolderLock(plan.last_sync_path(shard)) for shard in shards]
    for lock in held:
        lock.acquire()
    try:
        plan.stop_flag.unlink(missing_ok=True)
        set_aside_damaged_marks(plan, storage)
        if not _has_marks(plan):
            _open_index(plan, storage).discard_all()  # without marks it is not ours to continue
        marks = Marks.open_to_write(plan.paths.marks, storage, shards=plan.all_shards, term=0)
        marks.say_gone()
        _match_folders(plan, marks, storage)
        set_aside_damaged_files(plan, marks, storage)
        sync_failed = plan.failed_flag.exists()
        if sync_failed:
            marks.forget_visible()
        _mend_index(plan, marks, storage, distrusted=sync_failed or marks.machine_was_restarted)
        if marks.machine_was_restarted:
            marks.claim_boot()  # last, so that a crash before this repeats the steps above
        marks.close()
        storage.unlink(plan.failed_flag)
    finally:
        for lock in held:
            lock.release()


def _has_marks(plan: EpochPlan) -> bool:
    """Return True if a pipeline has created the marks; False if it was killed while it created the file."""
    try:
        Marks.open_read_only(plan.paths.marks).close()
    except FileNotFoundError:
        return False
    return True


def _open_index(plan: EpochPlan, storage: Storage) -> KeyIndex:
    return KeyIndex(plan.paths.index, slots=plan.index_slots, entries=plan.index_entries, storage=storage)


def _require_queue_files(plan: EpochPlan) -> None:
    """Raise StoreContradictionError if a broker keeps its queues in RocksDB: it would ignore queue files there."""
    sign = plan.paths.consume_queue / "CURRENT"
    if sign.exists():
        raise StoreContradictionError(
            "consumequeue/ is a RocksDB database (a broker's storeType), but queues must be files", path=str(sign)
        )


def _match_folders(plan: EpochPlan, marks: Marks, storage: Storage) -> None:
    """Create missing folders and reset their shards' marks, so that they are rebuilt from the log's start."""
    paths = plan.paths
    queues_gone = not (paths.consume_queue.is_dir() and paths.batch_consume_queue.is_dir())
    index_gone = not paths.index.is_dir()
    for shard in range(plan.all_shards):
        if index_gone if shard == plan.shards else queues_gone:
            marks.set_back(shard, 0)
    for folder in (paths.consume_queue, paths.batch_consume_queue, paths.index):
        storage.make_folder(folder)


def _lower_marks_above(plan: EpochPlan, physical_end: int, storage: Storage) -> None:
    """Lower marks above *physical_end* durably, then cut the key index there. Dropped units and keys are rebuilt."""
    marks = Marks.open_to_write(plan.paths.marks, storage, shards=plan.all_shards, term=0)
    index = _open_index(plan, storage)
    for shard in range(plan.all_shards):
        resume = index.cut_at(physical_end) if shard == plan.shards else physical_end
        if max(marks.visible(shard), marks.durable(shard)) > resume:
            marks.set_back(shard, resume)
    cut_index(index, physical_end, plan, marks)
    index.close()
    marks.close()


def _mend_index(plan: EpochPlan, marks: Marks, storage: Storage, *, distrusted: bool) -> None:
    """Make the key index hold each key below its mark exactly once, after a power cut or changes by a broker.

    After a kill, a broker destroys files and does not put all of their keys into new ones: if our newest file is
    missing, `rebuilding` has requested the whole index. After a power cut or a failed sync (*distrusted*), the newest
    file may hold any mix of old and new pages, unless the index was completely synced. Otherwise, if no builder of
    ours was killed during a build, keys of records above the mark are a broker's.

    Marks are lowered first, durably, so that the next start repairs a crash before the files are removed.
    """
    shard, mark = plan.shards, marks.visible(plan.shards)
    index = _open_index(plan, storage)
    newest = index.newest_file
    if distrusted and not marks.is_index_synced:
        begin = index.last_begins_at()
        marks.lower(shard, min(index.resume_at(mark), mark if begin is None else begin))
        marks.set_index_file(0)  # before the named file goes: a start after a kill must not blame a broker for its loss
        marks.flush()
        index.truncate(mark)
        if index.newest_file == newest:
            index.discard_last()
    elif marks.intended(shard) == mark:
        resume = index.cut_at(mark)
        if resume < mark:
            marks.set_back(shard, resume)
        cut_index(index, mark, plan, marks)
    marks.set_index_file(index.newest_file)
    index.close()


def drop_above(plan: EpochPlan, physical_end: int, storage: Storage) -> None:
    """Drop marks, units and keys of records past *physical_end*, the end of the log (docs/format.md §13).

    Used without a writer, when no new term reports the log's end to the shards.
    """
    _lower_marks_above(plan, physical_end, storage)
    paths = plan.paths
    for folder, size, batch in (
        (paths.consume_queue, plan.consume_queue_size, False),
        (paths.batch_consume_queue, plan.batch_consume_queue_size, True),
    ):
        for queue in sorted(folder.glob("*/*")):
            if queue.is_dir() and queue.name.isdigit():
                files = MappedFileQueue(queue, size, storage)
                ext = None if batch else plan.existing_ext(queue.parent.name, int(queue.name), storage)
                truncate_queue(files, physical_end, batch=batch, ext=ext)
                files.close()
