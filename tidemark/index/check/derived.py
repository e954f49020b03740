"""Compares derived files with a part of the log: queues, batch queues, extensions and the key index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidemark.format.check import Checker, Crc
from tidemark.index.check.findings import Finding, Reason, Report, Scope
from tidemark.index.check.keys import KeyChecks
from tidemark.index.check.queues import QueueChecks
from tidemark.index.check.store import report_damages
from tidemark.index.key_index import index_files, read_header
from tidemark.index.log_walk import LogWalk
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.paths import StorePaths

_OF_QUEUES = (Reason.UNIT_MISSING, Reason.UNIT_WRONG, Reason.UNIT_EXTRA)
_OF_INDEX = (
    Reason.INDEX_HEADER,
    Reason.KEY_MISSING,
    Reason.KEY_WRONG,
    Reason.KEY_EXTRA,
    Reason.KEY_CHAIN,
    Reason.KEY_TIME,
)


class Damaged(NamedTuple):
    """Derived files to rebuild. first: name of the oldest index file to rebuild; "" for all, None for none."""

    queues: frozenset[tuple[str, int]]
    first: str | None

    def __bool__(self) -> bool:
        return bool(self.queues) or self.first is not None


def compare_stretch(
    paths: StorePaths, log: MappedFileQueue, start: int, end: int, *, index_slots: int | None
) -> tuple[list[Finding], int]:
    """Compare the units and keys of the records from *start*, where a record begins, to *end*.

    All of these records must be built. Return the findings and the physical offset reached.
    """
    report, scope = Report(), _scope(start, end)
    queues = QueueChecks(paths, scope, report)
    keys = KeyChecks(paths, scope, report, slots=index_slots)
    reached = start
    for part in LogWalk(log, start, Checker(crc=Crc.MARKS)).parts(limit=end, floor=end):
        report_damages(part, report)
        queues.take(part)
        keys.take(part)
        reached = part.end_offset
    queues.finish(reached)
    keys.finish(reached, with_files=False)
    return report.findings, reached


def check_index_files(paths: StorePaths, start: int, end: int, *, index_slots: int | None) -> list[Finding]:
    """Check headers, slots and chains of all index files, without the log. start, end: of the log."""
    report = Report()
    KeyChecks(paths, _scope(start, end), report, slots=index_slots).finish(end)
    return report.findings


def damaged_by(findings: Iterable[Finding], paths: StorePaths) -> Damaged:
    """Return the derived files that *findings* concern. Damage of the log concerns none."""
    queues: set[tuple[str, int]] = set()
    names: list[str] = []
    for finding in findings:
        path = finding.path or ""
        if finding.reason in _OF_QUEUES and finding.topic is not None and finding.queue_id is not None:
            queues.add((finding.topic, finding.queue_id))
        elif path.startswith("index/") and finding.reason in (*_OF_INDEX, Reason.FILE_SIZE):
            names.append(path.removeprefix("index/"))
        elif finding.reason in _OF_INDEX:
            names.append(_file_of_keys(paths, finding.physical_offset or 0))
    return Damaged(frozenset(queues), min(names) if names else None)


def _file_of_keys(paths: StorePaths, physical_offset: int) -> str:
    """Return the name of the index file in which the keys of a record belong; "" if no file begins before it."""
    for path in reversed(index_files(paths.index)):
        if read_header(path).begin_physical_offset <= physical_offset:
            return path.name
    return ""


def _scope(start: int, end: int) -> Scope:
    return Scope(
        start=start, end=end, floor=end, built_to=end, keys_to=end, is_living=True, is_ours=True, is_range=True
    )
