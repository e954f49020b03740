"""Finds derived files that contradict the log at a start, and sets them aside; their shards build them again."""

from __future__ import annotations

from pathlib import Path

import structlog

from tidemark.errors import CorruptStoreError
from tidemark.index.damaged_files import damaged_queues, first_damaged_index_file
from tidemark.index.key_index import index_files, read_header
from tidemark.index.rebuild_request import (
    RebuildRequest,
    at,
    divide_again,
    index_path,
    load_request,
    queues_path,
    request_index,
    request_queues,
    save_request,
)
from tidemark.index.set_aside import set_aside
from tidemark.store.marks import Marks
from tidemark.store.storage import Storage

from ..plan import EpochPlan

log = structlog.get_logger()


def set_aside_damaged_marks(plan: EpochPlan, storage: Storage) -> None:
    """Set the marks file aside if it is invalid or a mark exceeds the log's files: everything is built again."""
    try:
        marks = Marks.open_read_only(plan.paths.marks)
    except FileNotFoundError:
        return
    except CorruptStoreError as error:
        message = error.message
    else:
        log_files = plan.open_log()
        end = log_files.capacity_end
        log_files.close()
        greatest = max(max(marks.visible(shard), marks.durable(shard)) for shard in range(marks.shards))
        marks.close()
        if 0 <= greatest <= end or not end:
            return
        message = f"a mark is {greatest}, and the log's files end at {end}"
    moved = set_aside(plan.paths.marks, plan.paths, storage, kept=plan.set_aside_files)
    log.error("marks_set_aside", message=message, path=str(plan.paths.marks), moved_to=str(moved))


def set_aside_damaged_files(plan: EpochPlan, marks: Marks, storage: Storage) -> None:
    """Find damaged derived files, request their rebuild, and set aside all requested files. No task runs."""
    paths = plan.paths
    for path in sorted(paths.indexer.glob("rebuild-*")):
        try:
            load_request(path)
        except ValueError:  # the named files are unknown: rebuild all
            log.error("rebuild_request_unreadable", path=str(path))
            storage.unlink(path)
            request_index(paths, "", storage)
            request_queues(paths, _all_queues(plan), shards=plan.shards, storage=storage)
    divide_again(paths, shards=plan.shards, storage=storage)
    queues = damaged_queues(paths, plan.file_sizes)
    if queues:
        request_queues(paths, queues, shards=plan.shards, storage=storage)
    first = first_damaged_index_file(paths, plan.file_sizes.index_file)
    if first is None and marks.index_file and _is_lost(plan, marks.index_file):
        first = ""
    if first is not None:
        request_index(paths, first, storage)
    for shard in range(plan.all_shards):
        take_request(plan, shard, marks, storage)


def take_request(plan: EpochPlan, shard: int, marks: Marks, storage: Storage) -> RebuildRequest | None:
    """Set aside the files of the shard's request and return it; None if there is none. The caller holds the shard."""
    path = request_path(plan, shard)
    request = load_request(path)
    if request is None or request.position is not None:
        return request
    if shard == plan.shards:
        moved = _set_aside_index(plan, request.first, marks, storage)
        request = at(request, _index_position(plan))
    else:
        moved = _set_aside_queues(plan, request, storage)
        request = at(request, _log_min(plan))
    save_request(path, request, storage)
    queues = [f"{topic}/{queue_id}" for topic, queue_id in sorted(request.queues)]
    log.error("derived_files_set_aside", shard=shard, queues=queues, moved=moved, position=request.position)
    return request


def request_path(plan: EpochPlan, shard: int) -> Path:
    """Return the path of a shard's request."""
    return index_path(plan.paths) if shard == plan.shards else queues_path(plan.paths, shard)


def _is_lost(plan: EpochPlan, name: int) -> bool:
    """Return True if the newest index file that the marks know is gone, or holds no key."""
    path = plan.paths.index / f"{name:017d}"
    return not path.exists() or read_header(path).index_count <= 1


def _set_aside_queues(plan: EpochPlan, request: RebuildRequest, storage: Storage) -> int:
    moved = 0
    for topic, queue_id in sorted(request.queues):
        for folder in (
            plan.paths.queue(topic, queue_id, batch=False),
            plan.paths.queue(topic, queue_id, batch=True),
            plan.paths.queue_ext(topic, queue_id),
        ):
            moved += set_aside(folder, plan.paths, storage, kept=plan.set_aside_files) is not None
    return moved


def _set_aside_index(plan: EpochPlan, first: str, marks: Marks, storage: Storage) -> int:
    files = [path for path in index_files(plan.paths.index) if path.name >= first]
    kept = [path for path in index_files(plan.paths.index) if path.name < first]
    marks.set_index_file(int(kept[-1].name) if kept else 0)
    marks.flush()
    for path in reversed(files):
        set_aside(path, plan.paths, storage, kept=plan.set_aside_files)
    return len(files)


def _index_position(plan: EpochPlan) -> int:
    """Return the physical offset of the last record with keys in the kept files; if none, the log's start."""
    for path in reversed(index_files(plan.paths.index)):
        header = read_header(path)
        if header.index_count > 1:
            return header.end_physical_offset
    return _log_min(plan)


def _log_min(plan: EpochPlan) -> int:
    files = plan.open_log()
    files.close()
    return files.min_offset


def _all_queues(plan: EpochPlan) -> set[tuple[str, int]]:
    return {
        (folder.parent.name, int(folder.name))
        for root in (plan.paths.consume_queue, plan.paths.batch_consume_queue)
        for folder in root.glob("*/*")
        if folder.is_dir() and folder.name.isdigit()
    }
