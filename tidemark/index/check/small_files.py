"""Checks a store's small files: that they can be read, and that they are consistent with the log."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from tidemark.errors import CorruptStoreError
from tidemark.index.check.findings import Note, Reason, Report, relative
from tidemark.index.check.queues import QueueKey
from tidemark.store.checkpoint import Checkpoint
from tidemark.store.marks import Marks
from tidemark.store.originals.checked_copy import CopyFault, ValidContent, read_checked, read_file
from tidemark.store.originals.consumer_offsets import SEPARATOR, load_consumer_offsets
from tidemark.store.originals.next_offsets import NextOffsets, decode_next_offsets
from tidemark.store.originals.originals import OriginalFile, querys_originals, writers_originals
from tidemark.store.originals.terms import TERMS_FORM, clamp, read_terms
from tidemark.store.originals.tombstones import load_tombstones
from tidemark.store.originals.topics import is_config, load_topics
from tidemark.store.paths import StorePaths

_DAMAGE = (CopyFault.DAMAGED, CopyFault.MISSING)
_READ_ATTEMPTS = 20
_READ_PAUSE_S = 0.05  # a replacement is a few renames, but on a busy machine its process may wait between them


def check_small_files(paths: StorePaths, report: Report) -> None:
    """Report each file that cannot be read or is replaced by its copy because it is damaged."""
    loaders: dict[Path, Callable[[Path], Any]] = {
        paths.topics: load_topics,
        paths.consumer_offsets: load_consumer_offsets,
        paths.tombstones: load_tombstones,
        paths.next_offsets: _load_next_offsets,
    }
    for original in (*writers_originals(paths), *querys_originals(paths)):
        is_terms = original.path == paths.terms
        if _check_copy(original, paths, report, Reason.TERMS if is_terms else Reason.CONFIG):
            continue
        if is_terms:
            _check_terms(paths, report)
        elif original.path in loaders:
            _check_content(original.path, loaders[original.path], paths, report)


def _check_content(path: Path, load: Callable[[Path], Any], paths: StorePaths, report: Report) -> None:
    name = relative(path, paths.root)
    try:
        load(path)
    except CorruptStoreError as error:
        report.find(Reason.CONFIG, error.message.replace(str(path), name), path=name)
        return
    if path.exists() and not is_config(path):
        report.find(Reason.CONFIG, "cannot be read; its .bak is used instead", path=name)


def _check_copy(original: OriginalFile, paths: StorePaths, report: Report, reason: Reason) -> bool:
    """Compare an original with its checked copy; return True if one of them is damaged.

    A file that is older than its copy results from a crash and is not damage. A file without a copy is left to its
    reader.
    """
    name = relative(original.path, paths.root)
    try:
        choice = _read_settled(original)
    except CorruptStoreError as error:
        report.find(reason, error.message.replace(str(original.path), name), path=name)
        return True
    if choice.fault in _DAMAGE:
        report.find(reason, f"is {choice.fault.lower()}; its checked copy is used instead", path=name)
        return True
    if choice.has_copy and not choice.is_copy_sound:
        report.find(reason, "its checked copy is damaged; the file itself is valid", path=name)
        return True
    return False


def _read_settled(original: OriginalFile) -> ValidContent:
    """Read an original; read it again while it seems damaged, since its owner may be replacing file and copy.

    Raises CorruptStoreError if both are damaged.
    """
    choice = read_checked(*original)
    attempts = 1
    while choice.fault in _DAMAGE and attempts < _READ_ATTEMPTS:
        time.sleep(_READ_PAUSE_S)
        choice = read_checked(*original)
        attempts += 1
    return choice


def _load_next_offsets(path: Path) -> None:
    try:
        if path.exists():
            decode_next_offsets(orjson.loads(path.read_bytes()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptStoreError(f"{path} is not a table of queue offsets", path=str(path)) from error


def _check_terms(paths: StorePaths, report: Report) -> None:
    """Check every line, also of a file without a copy, except one that a crash cut off: readers ignore it.

    The file is read once, because a running writer may replace it.
    """
    data = read_file(paths.terms)
    if data is None:
        return
    try:
        TERMS_FORM.parse(data[: data.rfind(b"\n") + 1])
    except ValueError:
        text = "a line is not a term, or the terms are not consecutive"
        report.find(Reason.TERMS, text, path=relative(paths.terms, paths.root))


def check_checkpoint(paths: StorePaths, report: Report, *, log_end: int) -> None:
    """Check that the log reaches the committed offset. A broker leaves 0 or the start of its last record."""
    if not paths.checkpoint.exists():
        return
    name = relative(paths.checkpoint, paths.root)
    try:
        checkpoint = Checkpoint.open_read_only(paths.checkpoint)
    except CorruptStoreError as error:
        report.find(Reason.CHECKPOINT, error.message, path=name)
        return
    committed = checkpoint.committed_offset
    checkpoint.close()
    if log_end < committed < 1 << 63:
        text = f"the committed offset is {committed}, but the log ends at {log_end}"
        report.find(Reason.CHECKPOINT, text, path=name, physical_offset=log_end)


def check_marks(paths: StorePaths, report: Report, *, log_end: int) -> None:
    """Check that the watermark is not above the log's end."""
    name = relative(paths.marks, paths.root)
    try:
        marks = Marks.open_read_only(paths.marks)
    except FileNotFoundError:
        return
    except CorruptStoreError as error:
        report.find(Reason.MARKS, error.message, path=name)
        return
    watermark = clamp(marks.watermark(), of_term=marks.term, terms=read_terms(paths.terms))
    marks.close()
    if watermark > log_end:
        text = f"the watermark is {watermark}, but the log ends at {log_end}"
        report.find(Reason.MARKS, text, path=name, physical_offset=log_end)


def check_next_offsets(
    paths: StorePaths,
    report: Report,
    saved: NextOffsets | None,
    counted: dict[QueueKey, int],
    *,
    log_end: int,
    is_living: bool,
) -> None:
    """Check that the writer's table is not below *counted*: the next offsets of the log at the table's position.

    A running writer may have saved the table after the check's end was determined.
    """
    if saved is None or (is_living and saved.position > log_end):
        return
    name = relative(paths.next_offsets, paths.root)
    if saved.position > log_end:
        text = f"the table's position is {saved.position}, but the log ends at {log_end}"
        report.find(Reason.NUMBERS, text, path=name, physical_offset=log_end)
        return
    for (topic, queue_id), offset in sorted(counted.items()):
        there = saved.table.get((topic, queue_id), 0)
        if there < offset:
            text = f"the table's next offset is {there}, but the log has messages up to {offset - 1}"
            report.find(Reason.NUMBERS, text, path=name, topic=topic, queue_id=queue_id, queue_offset=there)


def check_consumer_offsets(
    paths: StorePaths, report: Report, bounds: dict[QueueKey, tuple[int, int]], *, is_living: bool
) -> None:
    """Check that each group's offset is within its queue. bounds: first and next offset of queues with records.

    While a writer runs, a group may have read messages after the check's end.
    """
    name = relative(paths.consumer_offsets, paths.root)
    try:
        table = load_consumer_offsets(paths.consumer_offsets)
    except CorruptStoreError:
        return  # reported already
    expired = 0
    for key, queues in sorted(table.items()):
        topic, _, group = key.partition(SEPARATOR)
        for queue_id, offset in sorted(queues.items()):
            first, end = bounds.get((topic, queue_id), (offset, offset))
            if offset > end and not is_living:
                text = f"the consumer offset of group {group} is {offset}, but the queue ends at {end}"
                where = {"topic": topic, "queue_id": queue_id, "queue_offset": offset}
                report.find(Reason.CONSUMER_OFFSET, text, path=name, **where)
            expired += offset < first
    if expired:
        text = f"{expired} consumer offsets are below their queues' first message: those groups have missed messages"
        report.note(Note.CONSUMER_OFFSET_EXPIRED, text, path=name, count=expired)
