"""Deletes expired queue files: all of their units point below the log's minimum (docs/format.md §4, §5)."""

from __future__ import annotations

import numpy as np

from tidemark.format import batch_consume_queue, consume_queue
from tidemark.index.queue_end import find_batch_end, find_simple_end
from tidemark.store.mapped_file_queue import MappedFileQueue

_BEYOND_ALL = (1 << 63) - 1


def expire_queue(files: MappedFileQueue, log_min: int, *, batch: bool) -> list[int]:
    """Delete the leading files whose units all point below physical offset *log_min*, and return their starts.

    The file with the queue's last unit always stays, because it preserves the queue's offsets. The last file itself
    may be empty, if its builder was killed during a roll.
    """
    if len(files.starts) < 2:
        return []
    end = (find_batch_end if batch else find_simple_end)(files, _BEYOND_ALL)
    deleted: list[int] = []
    for start in list(files.starts):
        if end <= start + files.file_size or _greatest(files, start, batch=batch) >= log_min:
            break
        files.delete_file(start)
        deleted.append(start)
    return deleted


def _greatest(files: MappedFileQueue, start: int, *, batch: bool) -> int:
    """Return the greatest physical offset in a full file: its last unit's, or a search if that one is pre-blank."""
    unit = batch_consume_queue.UNIT if batch else consume_queue.UNIT
    is_live = batch_consume_queue.is_live if batch else consume_queue.is_live
    count = files.file_size // unit.itemsize
    last = np.frombuffer(files.read(start + (count - 1) * unit.itemsize, unit.itemsize), unit)
    if not is_live(last)[0]:
        last = np.frombuffer(files.read(start, count * unit.itemsize), unit)
        last = last[is_live(last)]
    return int(last["physical_offset"].max()) if len(last) else -1
