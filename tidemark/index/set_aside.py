"""Moves files that a rebuild replaces to `tidemark/indexer/set-aside`, outside RocketMQ's folders; keeps a few."""

from __future__ import annotations

import contextlib
import shutil
import time
from pathlib import Path

from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage

KEPT = 16


def set_aside(path: Path, paths: StorePaths, storage: Storage, *, kept: int = KEPT) -> Path | None:
    """Move the file or folder at *path* and return its new path; None if there is none.

    Only the newest *kept* files and folders stay.
    """
    folder = paths.indexer / "set-aside"
    storage.make_folder(folder)
    target = folder / f"{time.time_ns()}-{'+'.join(path.relative_to(paths.own).parts)}"
    try:
        storage.rename(path, target)
    except FileNotFoundError:
        return None
    for old in sorted(folder.iterdir())[:-kept] if kept else folder.iterdir():
        _remove(old)
    return target


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
