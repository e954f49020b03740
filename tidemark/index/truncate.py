"""Dropping queue units of records that are not in the log any more (spec 4.5, 5.4), and nothing else."""

from __future__ import annotations

from tidemark.format import batch_consume_queue, consume_queue
from tidemark.index.consume_queue_ext import ConsumeQueueExt, last_address
from tidemark.index.queue_end import find_batch_end, find_simple_end
from tidemark.store.mapped_file_queue import MappedFileQueue

_BEYOND_ALL = (1 << 63) - 1


def is_all_below(files: MappedFileQueue, physical_end: int, *, batch: bool) -> bool:
    """Whether no unit of the queue points at or above *physical_end*."""
    find = find_batch_end if batch else find_simple_end
    return find(files, physical_end) == find(files, _BEYOND_ALL)


def truncate_queue(
    files: MappedFileQueue, physical_end: int, *, batch: bool, ext: MappedFileQueue | None = None
) -> int:
    """Drop units of records that start at or above *physical_end*, and what they have in *ext*; returns how many.

    Bytes become zero and whole files behind the cut go, so what is left equals a rebuild. Durable when this returns.
    """
    if not files.starts:
        return 0
    find = find_batch_end if batch else find_simple_end
    unit_size = batch_consume_queue.UNIT_SIZE if batch else consume_queue.UNIT_SIZE
    keep = find(files, physical_end)
    end = find(files, _BEYOND_ALL)
    if keep >= end:
        return 0
    dropped = (end - keep) // unit_size
    address = last_address(files, keep) if ext is not None else None
    for start in reversed(list(files.starts)):
        if start >= keep:
            files.delete_file(start)
    if files.starts and keep < files.capacity_end:
        files.zero(keep, min(end, files.capacity_end))
        files.flush(files.file_start(keep))
    if ext is not None:
        ConsumeQueueExt(ext).truncate_by_max_address(address)
    return dropped
