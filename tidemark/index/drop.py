"""Removes built files so that the pipeline builds them again from the log: `tidemark store rebuild`.

A folder is renamed to `<name>.dropped` in one step and stays under that name until the new one is complete, because
its files' sizes are needed. After a kill at any point, the same call continues.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

from tidemark.errors import CorruptStoreError
from tidemark.format import index_file
from tidemark.index.damaged_files import common_file_size, sizes_below
from tidemark.index.key_index import index_files
from tidemark.store.lock import FolderLock
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage


@contextlib.contextmanager
def no_pipeline(paths: StorePaths, storage: Storage) -> Iterator[None]:
    """Hold the pipeline's lock. StoreLockedError: a pipeline runs."""
    storage.make_folder(paths.indexer)
    lock = FolderLock(paths.indexer / "lock")
    try:
        lock.require()
        yield
    finally:
        lock.release()


def drop_built(paths: StorePaths, storage: Storage, *, queues: bool, index: bool) -> None:
    """Remove queue files, the key index, or both. The caller holds the pipeline's lock."""
    _set_marks_back(paths, storage, queues=queues, index=index)
    for folder in _folders(paths, queues=queues, index=index):
        dropped = _dropped(folder)
        if dropped.exists() and folder.exists():  # left by a killed rebuild: delete its incomplete result
            part = folder.with_name(f"{folder.name}.part")
            _remove(part)
            storage.rename(folder, part)
            _remove(part)
        elif folder.exists():
            storage.rename(folder, dropped)


def forget_dropped(paths: StorePaths) -> None:
    """Delete the dropped files. The new files are complete."""
    for folder in _folders(paths, queues=True, index=True):
        _remove(_dropped(folder))
        _remove(folder.with_name(f"{folder.name}.part"))


def sizes_of_built(paths: StorePaths) -> dict[str, int]:
    """Return the sizes of existing or dropped files by the pipeline's setting, where files determine it."""
    sizes: dict[str, int] = {}
    for name, folder in (
        ("consume_queue_file_size_bytes", paths.consume_queue),
        ("batch_consume_queue_file_size_bytes", paths.batch_consume_queue),
    ):
        size = common_file_size(itertools.chain(sizes_below(_dropped(folder)), sizes_below(folder)))
        if size is not None:
            sizes[name] = size
    files = [path for root in (_dropped(paths.index), paths.index) for path in index_files(root)]
    slots = next((slots for path in files if (slots := index_file.slots_of_size(path.stat().st_size))), None)
    if slots is not None:
        sizes["index_slots"] = slots
    return sizes


def _set_marks_back(paths: StorePaths, storage: Storage, *, queues: bool, index: bool) -> None:
    """Reset the marks to 0. This comes first, so that readers do not look for files that are being removed."""
    try:
        marks = Marks.open_read_only(paths.marks)
    except (FileNotFoundError, CorruptStoreError):
        return
    shards, term = marks.shards, marks.term
    marks.close()
    marks = Marks.open_to_write(paths.marks, storage, shards=shards, term=term)
    for shard in range(shards):
        if index if shard == shards - 1 else queues:
            marks.set_back(shard, 0)
    marks.close()


def _folders(paths: StorePaths, *, queues: bool, index: bool) -> list[Path]:
    both = [paths.consume_queue, paths.batch_consume_queue] if queues else []
    return both + ([paths.index] if index else [])


def _dropped(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.dropped")


def _remove(folder: Path) -> None:
    """Delete an unused folder. The deletion need not be durable."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
