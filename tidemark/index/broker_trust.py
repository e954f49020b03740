"""The files that a starting broker trusts: no `abort` file, and the times in `checkpoint` (docs/format.md §13).

Without `abort` it believes that every queue is complete up to the greatest position over all of them, so a single shard
that lags would cost it messages. With `abort` it believes queues and index as far as the times say: index files that
end later than the index time are destroyed, and the log is dispatched again from the logics time on. A late logics time
beside an early index time loses the keys between. So while anybody of ours writes, both are zero (a broker dispatches
the whole log again), and both are true when `abort` goes.
"""

from __future__ import annotations

from tidemark.errors import CorruptStoreError
from tidemark.format import index_file
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
    """Before anything is written: zero times, durably. `mark_running` comes next, unless there is an `abort` file.

    The caller holds the store's lock.
    """
    checkpoint = Checkpoint.open_to_write(paths.checkpoint, storage)
    checkpoint.set(Field.LOGICS_MESSAGE_TIMESTAMP, 0)
    checkpoint.set(Field.INDEX_MESSAGE_TIMESTAMP, 0)
    checkpoint.flush()
    checkpoint.close()


def mark_running(paths: StorePaths, storage: Storage) -> bytes:
    """A new `abort` file, durably; at no moment is there none. Gives the token of this run, which is in it."""
    token = new_token()
    replace_file(storage, paths.abort, encode_abort(token), keep_previous=False)
    return token


def give_trust(paths: StorePaths, end: int, *, store_timestamp: int, storage: Storage) -> bool:
    """When everything below *end*, the log's end, is durably built: true times, durably, then no `abort` file.

    store_timestamp  of the last record, epoch milliseconds
    returns          False, and nothing is changed, when a shard or the key index lags

    The caller holds the store's lock.
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
    """Whether every shard of the pipeline, the key index too, has durably built all of the log."""
    try:
        marks = Marks.open_read_only(paths.marks)
    except (FileNotFoundError, CorruptStoreError):
        return False
    try:
        return marks.durable_floor() == end == marks.greatest_durable()
    finally:
        marks.close()


def last_store_timestamp(log: MappedFileQueue, end: int) -> int:
    """Store time of the last record below *end*; 0 when there is none."""
    for start in reversed([start for start in log.starts if start < end]):
        last = 0
        for part in LogWalk(log, start, Checker(crc=Crc.OFF)).parts(limit=min(end, start + log.file_size), floor=end):
            if len(part.requests):
                last = int(part.requests["store_timestamp"][-1])
        if last:
            return last
    return 0


def _last_index_timestamp(paths: StorePaths) -> int:
    """The latest time of any index file: a broker destroys what ends later. 0 when no key is indexed."""
    last = 0
    for path in index_files(paths.index):
        with path.open("rb") as file:
            header = index_file.decode_header(file.read(index_file.HEADER_SIZE))
        if header.index_count > 1:
            last = max(last, header.end_timestamp)
    return last
