"""The first half of a drain: tasks scan the log in parallel ranges, and builders read the results."""

from __future__ import annotations

from tidemark.index.scan.log_range import LogRange, ranges_of
from tidemark.index.scan.scan_range import RangeProgress, scan_range
from tidemark.store.marks import Marks

from ..committed import CommittedOffset
from ..plan import EpochPlan


def ranges_to_build(plan: EpochPlan, *, size_bytes: int) -> tuple[LogRange, ...]:
    """Return the ranges of the log between the least mark and the committed offset."""
    marks = Marks.open_read_only(plan.paths.marks)
    committed = CommittedOffset(plan)
    start, end = min(marks.visible(shard) for shard in range(marks.shards)), committed.read()
    committed.close()
    marks.close()
    log = plan.open_log()
    ranges = ranges_of(log, max(start, log.min_offset), end, size_bytes=size_bytes) if end else ()
    log.close()
    return ranges


def scan_planned(plan: EpochPlan, number: int) -> RangeProgress:
    """Scan range *number* of the plan. Body of a task."""
    assert plan.scanned is not None, "the caller has planned it"
    folder, ranges = plan.scanned
    log = plan.open_log()
    try:
        return scan_range(
            log,
            ranges[number],
            folder,
            floor=ranges[-1].end,
            light=plan.multi_dispatch,
            chunk_size_bytes=plan.chunk_size,
        )
    finally:
        log.close()
