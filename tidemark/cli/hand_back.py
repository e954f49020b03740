"""Handing a directory back to a RocketMQ broker (`tidemark store hand-back`): a stopped store, brought to its end.

The writer, started and stopped, cuts what is torn; the pipeline drains; then the times in `checkpoint` and the missing
`abort` file say that all is built (`tidemark.index.broker_trust`), and a broker that opens it trusts queues and index.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tidemark.cli.local_stack import PIPELINE, STOP_TIMEOUT_S, WRITER, LocalStack, ServiceDiedError
from tidemark.cli.service import Service, service_module
from tidemark.errors import StoreContradictionError, StoreLockedError, UnavailableError
from tidemark.index.broker_trust import give_trust, last_store_timestamp
from tidemark.index.end_of_log import durable_floor, find_end_of_log
from tidemark.store.lock import FolderLock, StoreLock, lock_holder
from tidemark.store.mapped_file_queue import MappedFileQueue, size_on_disk
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

_POLL_S = 1.0


class HandedBack(NamedTuple):
    """What a broker finds. broker_settings: the file sizes that its broker.conf must name."""

    end_offset: int  # of the log, exclusive
    broker_settings: dict[str, int]


def hand_back(root: Path, *, on_step: Callable[[str], None] = lambda _: None) -> HandedBack:
    """Bring the stopped store at *root* to the state that a broker opens cleanly; *on_step* is told what happens next.

    Sizes of files that do not exist yet come from the environment, as the services read them.

    raises StoreLockedError while a writer, a pipeline or a broker runs on it; StoreContradictionError when it is no
    store; ServiceDiedError when the writer or the pipeline fails; UnavailableError when somebody wrote meanwhile
    """
    paths = StorePaths(root.absolute())
    if not paths.commit_log.is_dir():
        raise StoreContradictionError("there is no store: no commitlog folder", path=str(paths.root))
    _require_stopped(paths)
    (paths.root / "logs").mkdir(exist_ok=True)
    on_step("recovering the log")
    _start_and_stop_writer(paths)
    on_step("building what is missing of queues and index")
    _drain(paths)
    with _owned(paths):
        end = _give_trust(paths)
    return HandedBack(end, _broker_settings(paths))


def _require_stopped(paths: StorePaths) -> None:
    """StoreLockedError while anybody works on the store."""
    holder = lock_holder(paths.lock)
    if holder is not None:
        raise StoreLockedError(
            "a writer or a broker runs on this store: stop it first", path=str(paths.lock), pid=holder
        )
    if paths.indexer.is_dir():
        lock = FolderLock(paths.indexer / "lock")
        is_free = lock.try_acquire()
        lock.release()
        if not is_free:
            raise StoreLockedError("a pipeline runs on this store: stop it first", path=str(paths.indexer / "lock"))


def _start_and_stop_writer(paths: StorePaths) -> None:
    stack = LocalStack(paths.root)
    environment = {"TIDEMARK_STORE_ROOT": str(paths.root), "TIDEMARK_WRITER_LISTEN": stack.writer_address}
    try:
        writer = stack.start_service(WRITER, environment)
    except BaseException:
        stack.stop()
        raise
    if writer.stop(STOP_TIMEOUT_S) != 0:
        raise ServiceDiedError(writer)


def _drain(paths: StorePaths) -> None:
    command = [service_module("indexer"), "pipeline", "--once"]
    environment = {"TIDEMARK_STORE_ROOT": str(paths.root)}
    pipeline = Service(PIPELINE, command, environment, paths.root / "logs" / "pipeline.log")
    try:
        while pipeline.wait(_POLL_S) is None:
            pass
    except BaseException:
        pipeline.stop(STOP_TIMEOUT_S)
        raise
    if pipeline.kill() != 0:
        raise ServiceDiedError(pipeline)


@contextmanager
def _owned(paths: StorePaths) -> Iterator[None]:
    """Hold both locks; StoreLockedError when somebody was quicker."""
    indexer = FolderLock(paths.indexer / "lock")
    try:
        indexer.require()
        log = StoreLock(paths.lock)
        try:
            yield
        finally:
            log.release()
    finally:
        indexer.release()


def _give_trust(paths: StorePaths) -> int:
    log = MappedFileQueue(paths.commit_log, size_on_disk(paths.commit_log) or os.sysconf("SC_PAGE_SIZE"))
    end = find_end_of_log(log, durable_floor(paths, log))
    store_timestamp = last_store_timestamp(log, end)
    log.close()
    if not give_trust(paths, end, store_timestamp=store_timestamp, storage=DiskStorage()):
        raise UnavailableError("somebody has written meanwhile: try again", path=str(paths.root))
    return end


def _broker_settings(paths: StorePaths) -> dict[str, int]:
    """RocketMQ's settings for the kinds of files that there are. The index's slots and entries no file tells."""
    kinds = {
        "mappedFileSizeCommitLog": [paths.commit_log],
        "mappedFileSizeConsumeQueue": paths.consume_queue.glob("*/*"),
        "mapperFileSizeBatchConsumeQueue": paths.batch_consume_queue.glob("*/*"),
    }
    found = {name: next(filter(None, map(size_on_disk, folders)), None) for name, folders in kinds.items()}
    return {name: size for name, size in found.items() if size is not None}
