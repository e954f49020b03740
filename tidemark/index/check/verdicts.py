"""What a check says of each queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from tidemark.index.check.findings import Finding


class QueueVerdict(NamedTuple):
    """One queue. Queue offsets; records, units and findings are counts.

    kind     SimpleCQ or BatchCQ; None where the files are of another kind than topics.json says: nothing was compared
    first    offset of the first message that the log has; None without one
    next     behind its last message
    lagging  units that are not built yet, and need not be
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
        """One word or two: sound, lags, wrong."""
        return "wrong" if self.findings else ("lags" if self.lagging else "sound")

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {**self._asdict(), "verdict": self.verdict}


def count_findings(queues: Iterable[QueueVerdict], findings: Iterable[Finding]) -> list[QueueVerdict]:
    """*queues* with how many of the findings are about each, and queues that only findings know; in order."""
    counts = Counter((each.topic, each.queue_id) for each in findings if each.topic and each.queue_id is not None)
    known = {(queue.topic, queue.queue_id): queue for queue in queues}
    for (topic, queue_id), count in counts.items():
        found = known.get((topic, queue_id), QueueVerdict(topic, queue_id, None, 0, None, 0, 0))
        known[topic, queue_id] = found._replace(findings=count)
    return [known[key] for key in sorted(known)]
