"""A queue's bounds only rise, until its topic is deleted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.soak.facts import Facts, Queue
from tests.soak.history import Answer
from tests.soak.rules.real_time import ObservedValue, regressions


def going_back(facts: Facts) -> Iterator[str]:
    """Report a decrease of min_offset or max_offset between two consecutive answers to any clients."""
    for name in ("min_offset", "max_offset"):
        observed: defaultdict[Queue, list[ObservedValue[Answer]]] = defaultdict(list)
        for answer in facts.right:
            value = getattr(answer, name)
            if value is not None and answer.queue_id is not None and answer.topic not in facts.churned:
                row = ObservedValue(answer.invoked, answer.completed, value, answer)
                observed[Queue(answer.topic, answer.queue_id)].append(row)
        for queue, rows in observed.items():
            for earlier, later in regressions(rows):
                yield (
                    f"{queue}: {name} {earlier.value} was shown to {earlier.source.client} at {earlier.completed:.3f}, "
                    f"{later.value} to {later.source.client}, which asked at {later.invoked:.3f}"
                )
