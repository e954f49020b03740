"""Checks that a store's folders are safe: no other user may change files that a service trusts, or redirect it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tidemark.errors import StoreUnsafeError
from tidemark.store.paths import StorePaths

_ROOT = 0


def require_safe_store(paths: StorePaths, *, with_queues: bool = True) -> None:
    """Raise StoreUnsafeError if a service must not work in the store. This only reads; missing files are safe.

    The check covers the store's root, our and RocketMQ's files in it, and the folders of its CommitLog. None may be
    writable by all users, or belong to a user other than this process's or root. Nothing below them may be a symbolic
    link; a folder of the CommitLog that a setting names may be one.

    with_queues  check the files of queues and index, too, for a process that reads or writes them
    """
    if paths.is_attached:  # the store is only read; all writes go to our own folder
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
    """Yield the files and folders in the root, without folders of the CommitLog outside of it."""
    yield from (paths.checkpoint, paths.lock, paths.abort, paths.topics.parent, paths.format_file.parent)
    if with_queues:
        yield from (paths.consume_queue, paths.consume_queue_ext, paths.batch_consume_queue, paths.index)
    if paths.commit_log in paths.log_folders.all:
        yield paths.commit_log


def _require_own(path: Path) -> None:
    """Check the mode and the owner of *path*."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if status.st_mode & stat.S_IWOTH:
        raise StoreUnsafeError(
            f"{path} is writable by all users: run chmod o-w on it", path=str(path), fault="WORLD_WRITABLE"
        )
    user = os.geteuid()
    if status.st_uid not in (user, _ROOT) and user != _ROOT:
        raise StoreUnsafeError(
            f"{path} belongs to user {status.st_uid}, but this process runs as {user}: chown it, or run as its owner",
            path=str(path),
            fault="OWNER",
        )


def _require_no_link(path: Path) -> None:
    """Refuse *path* if it, or anything below it, is a symbolic link."""
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
    except FileNotFoundError:  # it does not exist yet, or was deleted meanwhile
        return


def _link(path: Path) -> StoreUnsafeError:
    return StoreUnsafeError(
        f"{path} is a symbolic link: mount its target there instead, or set the CommitLog's folders by "
        "TIDEMARK_COMMIT_LOG_PATHS",
        path=str(path),
        fault="SYMLINK",
    )
