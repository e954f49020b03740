"""Checks a store: compares queues, index and small files with one walk over the log.

It only reads and takes no lock, so it may run concurrently with a writer, below the given end. The caller passes the
store's expected state as a Scope; `tidemark.index.check.scope` derives one from the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tidemark.format.check import Checker, Crc, find_next_record
from tidemark.format.dispatch_request import Fault
from tidemark.index.check.findings import Finding, Note, Report, Scope
from tidemark.index.check.keys import KeyChecks
from tidemark.index.check.queues import QueueChecks, QueueKey
from tidemark.index.check.seen_files import SeenFiles, check_folders, common_size
from tidemark.index.check.small_files import (
    check_checkpoint,
    check_consumer_offsets,
    check_marks,
    check_next_offsets,
    check_small_files,
)
from tidemark.index.check.verdicts import QueueVerdict, count_findings
from tidemark.index.log_walk import Damage, LogPart, LogWalk
from tidemark.store.originals.next_offsets import load_next_offsets
from tidemark.store.paths import StorePaths

_DEFAULT_FILE_SIZE = 1 << 30
_WINDOW_SIZE = 16 << 20
_DAMAGE_TEXTS = {
    "MAGIC": "no record starts here",
    "LENGTH": "the record's lengths are negative, inconsistent, or exceed the file's end",
    "POSITION": "the record's physical offset differs from its position",
    "BODY_CRC": "the body does not match its CRC",
    "NUMBER": "a property is not a number but must be",
    "FILE_MISSING": "a file of the log is missing",
}
Progress = Callable[[int, int], None]  # (checked bytes of the log, total bytes)


class CheckReport(NamedTuple):
    """Result of a check. start, end: physical offsets of the checked part of the log; end is exclusive."""

    findings: list[Finding]
    notes: list[Finding]
    queues: list[QueueVerdict]
    start: int
    end: int
    records: int

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON value."""
        return {
            "start": self.start,
            "end": self.end,
            "records": self.records,
            "findings": [finding.as_json() for finding in self.findings],
            "notes": [note.as_json() for note in self.notes],
            "queues": [queue.as_json() for queue in self.queues],
        }


def check_store(
    paths: StorePaths,
    scope: Scope,
    *,
    with_index: bool = True,
    index_slots: int | None = None,
    on_progress: Progress = lambda done, total: None,
) -> CheckReport:
    """Check the store at *paths*, or the part of it that *scope* selects.

    with_index   check the key index, too; index_slots: see KeyChecks
    on_progress  called after each part of the log
    raises       OSError if the disk cannot be read; faults of the store are findings, not errors
    """
    report = Report()
    check_folders(paths, report)
    check_small_files(paths, report)
    saved = load_next_offsets(paths.next_offsets)
    log = SeenFiles(paths.commit_log, common_size(paths.commit_log) or _DEFAULT_FILE_SIZE)
    scope = _at_records(log, scope)
    queues = QueueChecks(paths, scope, report, position=None if saved is None else saved.position)
    keys = KeyChecks(paths, scope, report, slots=index_slots) if with_index else None
    limit = log.capacity_end if scope.end is None else scope.end
    records, end = 0, scope.start
    for part in _walk(log, scope, limit):
        report_damages(part, report)
        queues.take(part)
        if keys is not None:
            keys.take(part)
        records += len(part.requests)
        end = part.end_offset
        on_progress(end - scope.start, limit - scope.start)
    if scope.end is None:
        _check_after_end(log, end, report)
    verdicts = queues.finish(end)
    if keys is not None:
        keys.finish(end)
    if not scope.is_range:
        check_next_offsets(paths, report, saved, queues.numbers_at, log_end=end, is_living=scope.is_living)
        check_consumer_offsets(paths, report, _bounds(verdicts), is_living=scope.is_living)
        if not scope.is_living:
            check_checkpoint(paths, report, log_end=end)
            check_marks(paths, report, log_end=end)
    log.close()
    on_progress(limit - scope.start, limit - scope.start)
    verdicts = count_findings(verdicts, report.findings)
    return CheckReport(report.findings, report.notes, verdicts, scope.start, end, records)


def _bounds(queues: list[QueueVerdict]) -> dict[QueueKey, tuple[int, int]]:
    """Return the first and next offset of each queue with records."""
    return {(queue.topic, queue.queue_id): (queue.first, queue.next) for queue in queues if queue.first is not None}


def _at_records(log: SeenFiles, scope: Scope) -> Scope:
    """Return *scope* with start and end moved to record boundaries: it covers the records that begin within it."""
    start = _first_record(log, max(scope.start, log.min_offset))
    end = scope.end if scope.end is None or not scope.is_range else _first_record(log, scope.end)
    return replace(scope, start=start, end=end)


def _first_record(log: SeenFiles, at: int) -> int:
    """Return the start of the first record at or after *at*, by a walk over the previous records of its file.

    After damage, return the start of the next valid record.
    """
    if at % log.file_size == 0 or not log.covers(at):
        return at
    walk = LogWalk(log, log.file_start(at), Checker(crc=Crc.OFF))
    for _ in walk.parts(limit=at, floor=0):
        pass
    file_end = log.file_start(at) + log.file_size
    for place in (walk.position, at):
        window = np.frombuffer(bytearray(log.read(place, _WINDOW_SIZE)), np.uint8)
        found = Checker(crc=Crc.OFF, max_rows=1).check(window, base_offset=place, file_end=file_end - place)
        if found.records and place + found.end_at >= at:
            return place if place >= at else place + found.end_at
    next_record = find_next_record(window, base_offset=at, file_end=file_end - at)
    return file_end if next_record is None else at + next_record


def _walk(log: SeenFiles, scope: Scope, limit: int) -> Iterator[LogPart]:
    """Yield the log's parts up to the end of its records. Above the floor, a bad body counts as torn, too."""
    walk = LogWalk(log, scope.start, Checker(crc=Crc.MARKS))
    for part in walk.parts(limit=limit, floor=scope.floor):
        if part.damages and _is_log_over(log, part.damages[-1]):
            place = part.damages[-1].physical_offset
            yield part._replace(damages=part.damages[:-1], end_offset=place)
            return
        rows = part.requests
        torn = np.flatnonzero((rows["fault"] != Fault.NONE) & (rows["physical_offset"] >= scope.floor))
        if torn.size:
            first = int(torn[0])
            yield part._replace(requests=rows[:first], end_offset=int(rows["physical_offset"][first]))
            return
        yield part


def _is_log_over(log: SeenFiles, damage: Damage) -> bool:
    """Return True if only zero bytes follow: the log ends below the committed offset, and no record is damaged."""
    return damage.reason == Fault.MAGIC.name and _next_data(log, damage.physical_offset) is None


def report_damages(part: LogPart, report: Report) -> None:
    """Report the unreadable places of *part*."""
    for place, size, reason in part.damages:
        report.find_damage(reason, _DAMAGE_TEXTS[reason], physical_offset=place, size=size)


def _check_after_end(log: SeenFiles, end: int, report: Report) -> None:
    """Report nonzero bytes past the log's end: the rest of a torn record, or older bytes."""
    place = _next_data(log, end)
    if place is not None:
        text = f"bytes past the log's end, from {place} on, are not a record: the next start drops them"
        report.note(Note.TORN_TAIL, text, physical_offset=end)


def _next_data(log: SeenFiles, offset: int) -> int | None:
    """Return the offset of the first nonzero byte at or after *offset*; None if there is none."""
    for first, stop in log.data_stretches(offset):
        for at in range(first, stop, _WINDOW_SIZE):
            data = np.frombuffer(log.read_all(at, min(_WINDOW_SIZE, stop - at)), np.uint8)
            if data.any():
                return at + int(np.flatnonzero(data)[0])
    return None
