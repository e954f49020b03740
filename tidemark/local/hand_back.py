"""Prepares a stopped store's directory for a RocketMQ broker (`tidemark store hand-back`).

First the writer starts and stops, and thereby truncates a torn tail. Then the pipeline drains. Then the writer starts
and stops again: it finds that everything is built, writes true times into `checkpoint` and removes the `abort` file
(`tidemark.index.broker_trust`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tidemark.errors import StoreContradictionError, StoreLockedError, UnavailableError
from tidemark.local.child_service import Service
from tidemark.local.local_stack import PIPELINE, STOP_TIMEOUT_S, WRITER, LocalStack, ServiceDiedError
from tidemark.settings.registry import service_module
from tidemark.store.checkpoint import Checkpoint
from tidemark.store.lock import FolderLock, lock_holder
from tidemark.store.log_folders import LogFolders
from tidemark.store.mapped_file_queue import size_on_disk
from tidemark.store.multi_path_mapped_file_queue import log_size_on_disk
from tidemark.store.paths import StorePaths

_POLL_S = 1.0
_TRIES = 5  # the writer may deliver delayed messages while it runs, and these have to be built too


class HandedBack(NamedTuple):
    """The result for the broker. broker_settings: the file sizes that its broker.conf must have."""

    end_offset: int  # of the log, exclusive
    broker_settings: dict[str, int]


def hand_back(root: Path, *, on_step: Callable[[str], None] = lambda _: None) -> HandedBack:
    """Bring the stopped store at *root* to the state that a broker opens cleanly. Call *on_step* before each step.

    Sizes of files that do not exist yet come from the environment, as for the services.

    raises StoreLockedError while a writer, a pipeline or a broker runs on it; StoreContradictionError if it is not a
    store; ServiceDiedError if the writer or the pipeline fails; UnavailableError if the store was written to meanwhile
    """
    paths = StorePaths(root.absolute(), _log_folders(root.absolute()))
    if not any(folder.is_dir() for folder in paths.log_folders.all):
        raise StoreContradictionError(f"{paths.root} is not a store: it has no commitlog folder", path=str(paths.root))
    require_stopped(paths)
    (paths.root / "logs").mkdir(exist_ok=True)
    on_step("recovering the log")
    _start_and_stop_writer(paths)
    for _ in range(_TRIES):
        on_step("building the missing parts of queues and index")
        _drain(paths)
        on_step("marking the store as complete for the broker")
        _start_and_stop_writer(paths)
        if not paths.abort.exists():
            break
    else:
        raise UnavailableError(
            f"the store was written to at each of {_TRIES} tries of the hand-back: try again", path=str(paths.root)
        )
    checkpoint = Checkpoint.open_read_only(paths.checkpoint)
    end = checkpoint.committed_offset
    checkpoint.close()
    return HandedBack(end, _broker_settings(paths))


def _log_folders(root: Path) -> LogFolders:
    """Return the log folders that the services' settings in the environment name."""
    names = "TIDEMARK_COMMIT_LOG_PATHS", "TIDEMARK_COMMIT_LOG_READ_ONLY_PATHS"
    return LogFolders.parse(root, *(os.environ.get(name, "") for name in names))


def require_stopped(paths: StorePaths) -> None:
    """Raise StoreLockedError while a service or a broker runs on the store."""
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
    stack = LocalStack(paths.root, writer_remoting_port=0)
    environment = {
        "TIDEMARK_STORE_ROOT": str(paths.root),
        "TIDEMARK_WRITER_LISTEN": stack.writer_listen,
        "TIDEMARK_WRITER_REMOTING_LISTEN": stack.writer_remoting_address,
    }
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


def _broker_settings(paths: StorePaths) -> dict[str, int]:
    """Return RocketMQ's settings for the existing kinds of files. Index files do not show their slots and entries."""
    sizes = {
        "mappedFileSizeCommitLog": log_size_on_disk(paths.log_folders),
        "mappedFileSizeConsumeQueue": _queue_file_size(paths.consume_queue),
        "mapperFileSizeBatchConsumeQueue": _queue_file_size(paths.batch_consume_queue),
    }
    return {name: size for name, size in sizes.items() if size is not None}


def _queue_file_size(folder: Path) -> int | None:
    return next((size for queue in folder.glob("*/*") if (size := size_on_disk(queue)) is not None), None)
