"""DamageReport: writes the damage that one shard of queues finds to its ledger, and counts it."""

from __future__ import annotations

from tidemark.format.dispatch_request import Fault, RequestArray
from tidemark.index.build import Oddity
from tidemark.index.dispatch import QueueRun
from tidemark.index.ledger import Ledger

_UNBUILT = ("QUEUE_OFFSET", "BATCH_SIZE")  # oddities that are damage: the record got no unit


class DamageReport:
    """Reports to *ledger*. damages: places recorded for the first time. oddities: all that were reported."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.damages = 0
        self.oddities = 0

    def report(self, physical_offset: int, size: int, reason: str, **where: str | int | None) -> None:
        """Report one place. where: topic, queue_id and queue_offset, if known."""
        self.damages += self._ledger.record(
            physical_offset=physical_offset,
            size=size,
            reason=reason,
            **where,  # type: ignore[arg-type]
        )

    def report_faults(self, run: QueueRun) -> None:
        """Report the records of *run* whose check found a fault."""
        faults = run.requests["fault"]
        if faults.any():
            for row in run.requests[faults != Fault.NONE]:
                self._report_row(run, row, Fault(int(row["fault"])).name)

    def report_illegal_topic(self, run: QueueRun) -> None:
        """Report all records of *run*, whose topic or queue id is no name for a folder."""
        for row in run.requests:
            self._report_row(run, row, "TOPIC")

    def report_oddity(self, run: QueueRun, oddity: Oddity) -> None:
        """Count *oddity*, and report it if its record got no unit."""
        self.oddities += 1
        if oddity.reason in _UNBUILT:
            self.report(
                oddity.physical_offset,
                oddity.size,
                oddity.reason,
                topic=run.topic,
                queue_id=run.queue_id,
                queue_offset=oddity.queue_offset,
            )

    def _report_row(self, run: QueueRun, row: RequestArray, reason: str) -> None:
        self.report(
            int(row["physical_offset"]),
            int(row["message_size"]),
            reason,
            topic=run.topic,
            queue_id=run.queue_id,
            queue_offset=int(row["queue_offset"]),
        )
