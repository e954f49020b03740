"""Derives a check's Scope from a store's marks, terms, checkpoint and lock."""

from __future__ import annotations

import numpy as np

from tidemark.errors import CorruptStoreError
from tidemark.format import consume_queue
from tidemark.format.check import Checker
from tidemark.format.index_file import decode_header
from tidemark.format.index_layout import HEADER_SIZE
from tidemark.index.check.expected_units import BATCH, SIMPLE, decode, open_queue
from tidemark.index.check.findings import Scope
from tidemark.index.check.seen_files import SeenFiles, common_size, queue_folders
from tidemark.index.end_of_log import durable_floor
from tidemark.index.key_index import index_files
from tidemark.index.queue_end import find_batch_end, find_simple_end
from tidemark.store.checkpoint import Checkpoint
from tidemark.store.lock import lock_holder
from tidemark.store.marks import Marks
from tidemark.store.originals.terms import TermsFile
from tidemark.store.paths import StorePaths

_BEYOND_ALL = (1 << 63) - 1


def whole_store(paths: StorePaths) -> Scope:
    """Return the scope of the whole store at *paths*.

    While our writer runs, it ends at the current committed offset. While a broker runs, or without a writer, it ends
    at the end of the records.
    """
    log = SeenFiles(paths.commit_log, common_size(paths.commit_log) or 1 << 30)
    is_living = lock_holder(paths.lock) is not None
    keys_to = _durable_keys(paths)
    watermark = _watermark(paths)  # read before the committed offset, so that it cannot exceed it
    committed = _committed(paths) if is_living else None
    floor = durable_floor(paths, log)
    if watermark is None:
        floor = max(floor, _dispatched_end(paths, log))
    log.close()
    is_clean = not is_living and not paths.abort.exists()
    is_never_built = watermark is None and paths.writer.is_dir()  # just written, or restored
    everything = _BEYOND_ALL if is_clean and not is_never_built else 0
    return Scope(
        start=log.min_offset,
        end=committed,
        floor=max(floor, committed or 0),
        built_to=everything if watermark is None else watermark,
        keys_to=_BEYOND_ALL if keys_to is None else keys_to,
        is_living=is_living,
        is_clean=is_clean,
        is_ours=watermark is not None,
    )


def _watermark(paths: StorePaths) -> int | None:
    """Return the watermark, below which everything is built; None without a pipeline of ours."""
    try:
        marks = Marks.open_read_only(paths.marks)
    except (FileNotFoundError, CorruptStoreError):  # the check reports the latter
        return None
    watermark = TermsFile(paths.terms).clamp(marks.watermark(), of_term=marks.term)
    marks.close()
    return watermark


def _durable_keys(paths: StorePaths) -> int | None:
    """Return the physical offset below which the index would survive a power cut; None without a pipeline of ours.

    After a power cut the next start rebuilds the newest file, unless the marks say that the index was synced.
    """
    try:
        marks = Marks.open_read_only(paths.marks)
    except (FileNotFoundError, CorruptStoreError):
        return None
    durable = marks.durable(marks.shards - 1)
    if not marks.is_of_this_boot() and not marks.is_index_synced:
        durable = min(durable, _newest_begin(paths))
    marks.close()
    return durable


def _newest_begin(paths: StorePaths) -> int:
    for path in reversed(index_files(paths.index)):
        with path.open("rb") as file:
            data = file.read(HEADER_SIZE)
        if len(data) == HEADER_SIZE and (header := decode_header(data)).index_count > 1:
            return header.begin_physical_offset
    return _BEYOND_ALL


def _committed(paths: StorePaths) -> int | None:
    """Return the committed offset of our running writer; None while a broker runs."""
    if not TermsFile(paths.terms).current().is_of_this_boot():
        return None
    checkpoint = Checkpoint.open_read_only(paths.checkpoint)
    committed = checkpoint.committed_offset
    checkpoint.close()
    return committed


def _dispatched_end(paths: StorePaths, log: SeenFiles) -> int:
    """Return the end of the last record that a queue refers to and the log holds: bytes below it are no torn end."""
    ends = [
        _last_record_end(log, open_queue(folder, kind, kind.size), batch=kind is BATCH)
        for root, kind in ((paths.consume_queue, SIMPLE), (paths.batch_consume_queue, BATCH))
        for _, _, folder in queue_folders(root)
    ]
    return max(ends, default=0)


def _last_record_end(log: SeenFiles, queue: SeenFiles, *, batch: bool) -> int:
    kind = BATCH if batch else SIMPLE
    end = (find_batch_end if batch else find_simple_end)(queue, _BEYOND_ALL)
    units = decode(kind, queue.read(end - kind.size, kind.size)) if end > queue.min_offset else ()
    queue.close()
    for unit in units:
        place, size = int(unit["physical_offset"]), int(unit["message_size"])
        if place >= 0 and size != consume_queue.PRE_BLANK_SIZE and log.covers(place):
            data = np.frombuffer(bytearray(log.read(place, size)), np.uint8)
            found = Checker().check(data, base_offset=place)
            return place + size if len(found.requests) == 1 else 0
    return 0
