"""Verdicts of a check on each queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from tidemark.index.check.findings import Finding


class QueueVerdict(NamedTuple):
    """Verdict on one queue. first and next are queue offsets; records, lagging and findings are counts.

    kind     SimpleCQ or BatchCQ; None if nothing was compared, because the files contradict topics.json
    first    offset of the first message in the log; None if it has none
    next     offset after the last message
    lagging  units that are not built yet and need not be
    """

    topic: str
    queue_id: int
    kind: str | None
    records: int
    first: int | None
    next: int
    lagging: int
    findings: int = 0

    @property
    def verdict(self) -> str:
        """`sound`, `lags` or `wrong`."""
        return "wrong" if self.findings else ("lags" if self.lagging else "sound")

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as a JSON value."""
        return {**self._asdict(), "verdict": self.verdict}


def count_findings(queues: Iterable[QueueVerdict], findings: Iterable[Finding]) -> list[QueueVerdict]:
    """Return *queues* with their counts of findings, plus queues that occur only in findings, sorted."""
    counts = Counter((each.topic, each.queue_id) for each in findings if each.topic and each.queue_id is not None)
    known = {(queue.topic, queue.queue_id): queue for queue in queues}
    for (topic, queue_id), count in counts.items():
        found = known.get((topic, queue_id), QueueVerdict(topic, queue_id, None, 0, None, 0, 0))
        known[topic, queue_id] = found._replace(findings=count)
    return [known[key] for key in sorted(known)]
