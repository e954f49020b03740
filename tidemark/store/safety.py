"""Whether a store's folders are safe to work in: nobody else may change what a service trusts, or lead it elsewhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tidemark.errors import StoreUnsafeError
from tidemark.store.paths import StorePaths

_ROOT = 0


def require_safe_store(paths: StorePaths, *, with_queues: bool = True) -> None:
    """StoreUnsafeError for what a service must not work in. What is not there yet is safe; reads only.

    Of the store's root, of what lies in it and is ours or RocketMQ's, and of the folders of its CommitLog: none may be
    written by everybody, or be somebody else's than this process's user's or root's. Below them nothing may be a
    symbolic link; a folder of the CommitLog that a setting names may.

    with_queues  also the files of queues and index, for who reads or writes them
    """
    if paths.is_attached:  # the store is somebody else's, and only read; what is written lies in our own
        _require_own(paths.own)
        _require_no_link(paths.own / "tidemark")
        return
    _require_own(paths.root)
    for path in _of_store(paths, with_queues=with_queues):
        _require_no_link(path)
        _require_own(path)
    for folder in paths.log_folders.all:
        _require_own(folder)
        _require_no_links_in(folder)


def _of_store(paths: StorePaths, *, with_queues: bool) -> Iterator[Path]:
    """What lies in the root, the CommitLog's files left out."""
    yield from (paths.checkpoint, paths.lock, paths.abort, paths.topics.parent, paths.format_file.parent)
    if with_queues:
        yield from (paths.consume_queue, paths.consume_queue_ext, paths.batch_consume_queue, paths.index)
    if paths.commit_log in paths.log_folders.all:
        yield paths.commit_log


def _require_own(path: Path) -> None:
    """Its mode and its owner."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if status.st_mode & stat.S_IWOTH:
        raise StoreUnsafeError(f"{path} may be written by everybody: chmod o-w", path=str(path), fault="WORLD_WRITABLE")
    user = os.geteuid()
    if status.st_uid not in (user, _ROOT) and user != _ROOT:
        raise StoreUnsafeError(
            f"{path} belongs to user {status.st_uid}, and this process runs as {user}: chown it, or run as its owner",
            path=str(path),
            fault="OWNER",
        )


def _require_no_link(path: Path) -> None:
    """Neither itself nor anything below it."""
    if path.is_symlink():
        raise _link(path)
    if path.is_dir():
        _require_no_links_in(path)


def _require_no_links_in(folder: Path | str) -> None:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    raise _link(Path(entry.path))
                if entry.is_dir(follow_symlinks=False):
                    _require_no_links_in(entry.path)
    except FileNotFoundError:  # not there yet, or deleted meanwhile
        return


def _link(path: Path) -> StoreUnsafeError:
    return StoreUnsafeError(
        f"{path} is a symbolic link: mount its target there, or name folders of the CommitLog by "
        "TIDEMARK_COMMIT_LOG_PATHS",
        path=str(path),
        fault="SYMLINK",
    )
