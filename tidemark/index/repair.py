"""Repair of derived files: requests a rebuild of those that contradict the log. The pipeline builds them again."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.errors import CorruptStoreError
from tidemark.index.check.derived import Damaged, damaged_by
from tidemark.index.check.findings import Finding, Reason
from tidemark.index.rebuild_request import request_index, request_queues
from tidemark.index.set_aside import set_aside
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage


def repairable(findings: Iterable[Finding], paths: StorePaths) -> Damaged:
    """Return the derived files that *findings* concern, including files of a wrong size."""
    findings = list(findings)
    damaged = damaged_by(findings, paths)
    sized = {queue for finding in findings if finding.reason == Reason.FILE_SIZE and (queue := _queue_of(finding))}
    return Damaged(damaged.queues | sized, damaged.first)


def request_repair(damaged: Damaged, paths: StorePaths, storage: Storage) -> bool:
    """Request a rebuild of *damaged* by the next pipeline. The caller holds the pipeline's lock.

    Return False if the marks are unusable: then the pipeline builds everything again.
    """
    try:
        marks = Marks.open_read_only(paths.marks)
    except FileNotFoundError:
        return False
    except CorruptStoreError:
        set_aside(paths.marks, paths, storage)
        return False
    shards = marks.shards - 1
    marks.close()
    request_queues(paths, damaged.queues, shards=max(shards, 1), storage=storage)
    if damaged.first is not None:
        request_index(paths, damaged.first, storage)
    return True


def _queue_of(finding: Finding) -> tuple[str, int] | None:
    parts = (finding.path or "").split("/")
    if len(parts) != 4 or parts[0] not in ("consumequeue", "batchconsumequeue", "consumequeue_ext"):
        return None
    return parts[1], int(parts[2])
