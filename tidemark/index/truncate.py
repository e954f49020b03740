"""Drops the queue units of records that the log no longer holds (docs/format.md §4, §5)."""

from __future__ import annotations

import numpy as np

from tidemark.format import batch_consume_queue, consume_queue
from tidemark.index.consume_queue_ext import ConsumeQueueExt, last_address
from tidemark.index.queue_end import find_batch_end, find_simple_end
from tidemark.store.mapped_file_queue import MappedFileQueue

_BEYOND_ALL = (1 << 63) - 1
_PIECE_SIZE = 64 << 10
_BLANKS_A_READ = 4096


def is_all_below(files: MappedFileQueue, physical_end: int, *, batch: bool) -> bool:
    """Return True if no unit of the queue points at or above *physical_end*."""
    find = find_batch_end if batch else find_simple_end
    return find(files, physical_end) == find(files, _BEYOND_ALL)


def truncate_queue(
    files: MappedFileQueue, physical_end: int, *, batch: bool, ext: MappedFileQueue | None = None
) -> int:
    """Drop units of records at or above *physical_end*, with their extension units in *ext*; return how many.

    Bytes after the cut become zero and whole files after it are deleted, so the rest equals a rebuild. All bytes after
    the cut are checked: after a power cut, units may follow pages that never reached the disk. Durable on return.
    """
    if not files.starts:
        return 0
    find = find_batch_end if batch else find_simple_end
    unit_size = batch_consume_queue.UNIT_SIZE if batch else consume_queue.UNIT_SIZE
    keep = find(files, physical_end)
    keep = keep if batch else _without_blanks(files, keep)
    dropped = (find(files, _BEYOND_ALL) - keep) // unit_size
    address = last_address(files, keep) if ext is not None else None
    for start in reversed(list(files.starts)):
        if start >= keep:
            files.delete_file(start)
    if files.starts and keep < files.capacity_end:
        _wipe(files, keep)
    if ext is not None:
        ConsumeQueueExt(ext).truncate_by_max_address(address)
    return max(dropped, 0)


def _without_blanks(files: MappedFileQueue, end: int) -> int:
    """Lower *end* to exclude trailing pre-blank units: they only fill the hole before a unit that is cut."""
    size = consume_queue.UNIT_SIZE
    while end > files.min_offset:
        start = max(files.file_start(end - 1), end - _BLANKS_A_READ * size)
        units = consume_queue.decode_units(files.read(start, end - start))
        real = np.flatnonzero(units["message_size"] != consume_queue.PRE_BLANK_SIZE)
        if real.size:
            return start + (int(real[-1]) + 1) * size
        end = start
    return end


def _wipe(files: MappedFileQueue, offset: int) -> None:
    """Zero the last file from *offset* on. Holes are skipped: with many queues they are far larger than the data."""
    start, is_dirty = files.starts[-1], False
    while offset < files.capacity_end and (data := files.next_data(offset)) is not None:
        offset = data
        piece = files.read(offset, _PIECE_SIZE)
        if piece.count(0) < len(piece):
            files.zero(offset, offset + len(piece))
            is_dirty = True
        offset += len(piece)
    if is_dirty:
        files.flush(start)
