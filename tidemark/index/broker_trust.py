"""The state that a starting broker trusts: the absence of `abort` and the times in `checkpoint` (docs/format.md §13).

Without `abort`, a broker assumes that every queue is complete up to the greatest position over all queues, so it would
lose messages if a single shard lagged. With `abort`, it trusts queues and index up to the times: it destroys index
files that end after the index time, and dispatches the log again from the logics time on. A logics time later than the
index time therefore loses the keys in between. While a process of ours writes, both times are zero, so that a broker
dispatches the whole log again. Both are correct when `abort` is removed.
"""

from __future__ import annotations

from tidemark.errors import CorruptStoreError
from tidemark.format import index_file, index_layout
from tidemark.format.check import Checker, Crc
from tidemark.index.key_index import index_files
from tidemark.index.log_walk import LogWalk
from tidemark.store.batch_journal import encode_abort, new_token
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage, replace_file


def withdraw_trust(paths: StorePaths, storage: Storage) -> None:
    """Zero the checkpoint's logics and index times, durably. The caller holds the store's lock.

    Called before the first write. The caller calls `mark_running` next, unless `abort` exists.
    """
    checkpoint = Checkpoint.open_to_write(paths.checkpoint, storage)
    checkpoint.set(Field.LOGICS_MESSAGE_TIMESTAMP, 0)
    checkpoint.set(Field.INDEX_MESSAGE_TIMESTAMP, 0)
    checkpoint.flush()
    checkpoint.close()


def mark_running(paths: StorePaths, storage: Storage) -> bytes:
    """Write a new `abort` file, durably, and return the run's token in it. An existing one is replaced atomically."""
    token = new_token()
    replace_file(storage, paths.abort, encode_abort(token), keep_previous=False)
    return token


def give_trust(paths: StorePaths, end: int, *, store_timestamp: int, storage: Storage) -> bool:
    """Set the correct times, durably, and then remove `abort`, if everything below *end* is durably built.

    The caller holds the store's lock.

    end              the log's end
    store_timestamp  of the last record, epoch milliseconds
    returns          False, without a change, if a shard or the key index lags
    """
    if not is_built_to(paths, end):
        return False
    checkpoint = Checkpoint.open_to_write(paths.checkpoint, storage)
    checkpoint.set(Field.PHYSIC_MESSAGE_TIMESTAMP, store_timestamp)
    checkpoint.set(Field.LOGICS_MESSAGE_TIMESTAMP, store_timestamp)
    checkpoint.set(Field.INDEX_MESSAGE_TIMESTAMP, _last_index_timestamp(paths))
    checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, end)
    checkpoint.flush()
    checkpoint.close()
    storage.unlink(paths.abort)
    return True


def is_built_to(paths: StorePaths, end: int) -> bool:
    """Return True if every shard, including the key index, has durably built the log up to *end* and not beyond."""
    try:
        marks = Marks.open_read_only(paths.marks)
    except (FileNotFoundError, CorruptStoreError):
        return False
    try:
        return marks.durable_floor() == end == marks.greatest_durable()
    finally:
        marks.close()


def last_store_timestamp(log: MappedFileQueue, end: int) -> int:
    """Return the store timestamp of the last record below *end*; 0 if there is none."""
    for start in reversed([start for start in log.starts if start < end]):
        last = 0
        for part in LogWalk(log, start, Checker(crc=Crc.OFF)).parts(limit=min(end, start + log.file_size), floor=end):
            if len(part.requests):
                last = int(part.requests["store_timestamp"][-1])
        if last:
            return last
    return 0


def _last_index_timestamp(paths: StorePaths) -> int:
    """Return the latest end time of all index files, because a broker destroys files that end later; 0 without keys."""
    last = 0
    for path in index_files(paths.index):
        with path.open("rb") as file:
            header = index_file.decode_header(file.read(index_layout.HEADER_SIZE))
        if header.index_count > 1:
            last = max(last, header.end_timestamp)
    return last
