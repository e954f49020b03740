"""Before the first epoch: own the indexer's folder, look at what is there, and make the marks true."""

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
    """Hold the indexer's lock; StoreLockedError when another pipeline runs on this store."""
    storage.make_folder(plan.paths.indexer)
    lock = FolderLock(plan.paths.indexer / "lock")
    lock.require()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def own_log_without_writer(plan: EpochPlan) -> Iterator[bool]:
    """Hold RocketMQ's lock while nobody writes the log; gives False, and holds nothing, when a writer does."""
    if lock_holder(plan.paths.lock) is not None:
        yield False
        return
    lock = StoreLock(plan.paths.lock)
    try:
        yield True
    finally:
        lock.release()


def withdraw_trust_without_writer(plan: EpochPlan, storage: Storage) -> bool:
    """Whoever holds RocketMQ's lock stands in for the writer: a broker must not believe what is built in part.

    True: it would have believed this store until now, and may again when everything is built (`give_trust_back`).
    """
    was_trusted = not plan.paths.abort.exists()
    withdraw_trust(plan.paths, storage)
    if was_trusted:
        mark_running(plan.paths, storage)
    return was_trusted


def give_trust_back(plan: EpochPlan, storage: Storage) -> None:
    """Everything is built: leave the store as it was found."""
    assert plan.limit is not None, "the log's end is known to whoever holds its lock"
    log = plan.open_log()
    store_timestamp = last_store_timestamp(log, plan.limit)
    log.close()
    give_trust(plan.paths, plan.limit, store_timestamp=store_timestamp, storage=storage)


def prepare(plan: EpochPlan, storage: Storage) -> None:
    """Make marks, folders and index fit each other. Nobody builds while this runs: it takes every shard's lock."""
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
            _open_index(plan, storage).discard_all()  # not ours to go on with
        marks = Marks.open_to_write(plan.paths.marks, storage, shards=plan.all_shards, term=0)
        marks.say_gone()
        _match_folders(plan, marks, storage)
        set_aside_damaged_files(plan, marks, storage)
        sync_failed = plan.failed_flag.exists()
        if sync_failed:
            marks.forget_visible()
        _mend_index(plan, marks, storage, distrusted=sync_failed or marks.machine_was_restarted)
        if marks.machine_was_restarted:
            marks.claim_boot()  # only now: a crash before leads here again
        marks.close()
        storage.unlink(plan.failed_flag)
    finally:
        for lock in held:
            lock.release()


def _has_marks(plan: EpochPlan) -> bool:
    """Whether a pipeline of ours has been here: not when one was killed while it made the file."""
    try:
        Marks.open_read_only(plan.paths.marks).close()
    except FileNotFoundError:
        return False
    return True


def _open_index(plan: EpochPlan, storage: Storage) -> KeyIndex:
    return KeyIndex(plan.paths.index, slots=plan.index_slots, entries=plan.index_entries, storage=storage)


def _require_queue_files(plan: EpochPlan) -> None:
    """StoreContradictionError when a broker keeps its queues in RocksDB: files among the database's help nobody."""
    sign = plan.paths.consume_queue / "CURRENT"
    if sign.exists():
        raise StoreContradictionError("consumequeue/ is a RocksDB database (a broker's storeType)", path=str(sign))


def _match_folders(plan: EpochPlan, marks: Marks, storage: Storage) -> None:
    """Folders that were deleted are built again from the log's start."""
    paths = plan.paths
    queues_gone = not (paths.consume_queue.is_dir() and paths.batch_consume_queue.is_dir())
    index_gone = not paths.index.is_dir()
    for shard in range(plan.all_shards):
        if index_gone if shard == plan.shards else queues_gone:
            marks.set_back(shard, 0)
    for folder in (paths.consume_queue, paths.batch_consume_queue, paths.index):
        storage.make_folder(folder)


def _set_back_marks_behind(plan: EpochPlan, physical_end: int, storage: Storage) -> None:
    """Marks first, durably: what is dropped behind them is built again from there."""
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
    """Make the key index hold each key below its mark once, whatever a power cut or a broker has done to it.

    After a kill a broker destroys files and does not put all of their keys into new ones: where our newest file is
    gone, `rebuilding` has requested all of it. After a power cut or a failed sync (*distrusted*) the newest file may
    hold any mix of pages, unless all was synced. Otherwise, if no builder of ours was killed at work, keys of records
    above the mark are a broker's.

    Marks go back first, durably: a crash before the files go is mended by the next start.
    """
    shard, mark = plan.shards, marks.visible(plan.shards)
    index = _open_index(plan, storage)
    newest = index.newest_file
    if distrusted and not marks.is_index_synced:
        begin = index.last_begins_at()
        marks.lower(shard, min(index.resume_at(mark), mark if begin is None else begin))
        marks.set_index_file(0)  # the named file may go now: a killed start must not take that for a broker's deed
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


def drop_what_is_behind(plan: EpochPlan, physical_end: int, storage: Storage) -> None:
    """Where no writer tells a term: marks, units and keys of records behind the log's end go (docs/format.md §13)."""
    _set_back_marks_behind(plan, physical_end, storage)
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
