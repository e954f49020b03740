"""Counts of a soak, and the clients' waiting times. The times are reported, not judged."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.soak.facts import Facts
from tests.soak.history import OK
from tidemark.local.local_stack import PIPELINE

_EPOCH = re.compile(rb'"event": ?"epoch_finished"')


def report(facts: Facts, logs: Path) -> Iterator[str]:
    """Yield the lines to print."""
    yield from _appends(facts)
    yield from _answers(facts)
    yield from _groups(facts)
    yield from _faults(facts)
    epochs = sum(len(_EPOCH.findall(path.read_bytes())) for path in logs.glob(f"{PIPELINE}-*.log"))
    starts = Counter(path.name.rpartition("-")[0] for path in logs.iterdir())
    terms = {answer.term for answer in facts.right if answer.term is not None}
    yield f"starts           {_counts(starts)}"
    yield f"hand-overs       {epochs} epochs of the pipeline ended in order; {len(terms)} terms of the writer seen"
    yield from _waits(facts)


def _appends(facts: Facts) -> Iterator[str]:
    outcomes = Counter(append.outcome.lower() for append in facts.appends)
    messages = Counter[str]()
    for append in facts.appends:
        messages[append.outcome.lower()] += len(append.contents)
    repeated = sum(append.attempts > 1 for append in facts.appends)
    duplicates = sum(append.duplicate for append in facts.acknowledged)
    yield f"batches sent     {len(facts.appends)}: {_counts(outcomes)}"
    yield f"messages sent    {sum(messages.values())}: {_counts(messages)}"
    yield f"lost answers     {repeated} batches were sent more than once, {duplicates} were answered as duplicates"


def _answers(facts: Facts) -> Iterator[str]:
    kinds = Counter(answer.kind for answer in facts.answers)
    outcomes = Counter(answer.outcome for answer in facts.answers)
    read = sum(len(answer.seen) for answer in facts.answers)
    final = sum(len(queue) for queue in facts.final.values())
    yield f"answers          {len(facts.answers)}: {_counts(kinds)}"
    yield f"outcomes         {_counts(outcomes)}"
    yield f"messages read    {read}, distinct ones at the end: {final}"


def _groups(facts: Facts) -> Iterator[str]:
    handed = Counter[str]()
    for delivery in facts.deliveries:
        handed[delivery.group] += len(delivery.messages)
    handed.update(one.group for one in facts.handled)
    failed = sum(one.failed for one in facts.handled)
    retried = sum(one.message.attempt > 0 for one in facts.handled)
    errors = Counter(error.reason for error in facts.client_errors)
    changes = Counter(change.action for change in facts.topic_changes)
    yield f"handed out       {sum(handed.values())}: {_counts(handed)}"
    yield f"handlers         {failed} attempts failed, {retried} were retries, {len(facts.dead_letters)} dead letters"
    yield f"group offsets    {len(facts.commits)} reads"
    yield f"topics           {_counts(changes)}"
    yield f"members' errors  {_counts(errors)}"


def _faults(facts: Facts) -> Iterator[str]:
    kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for fault in facts.faults:
        kinds[" + ".join(fault.targets)][fault.action] += 1
    yield f"faults           {len(facts.faults)}"
    for targets, actions in sorted(kinds.items()):
        yield f"  {targets:26} {_counts(actions)}"


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counter.items())) or "none"


# -- delays after a fault -----------------------------------------------------------------------------------------


def _waits(facts: Facts) -> Iterator[str]:
    """Yield, for each kind of fault, the longest time until clients were served again; - without further requests."""
    appends = _Successes((append.invoked, append.completed) for append in facts.acknowledged)
    pulls = _Successes((answer.invoked, answer.completed) for answer in facts.right if answer.kind == "pull")
    visible = _Visibility(facts)
    longest: defaultdict[str, list[float | None]] = defaultdict(lambda: [None, None, None])
    for fault in facts.faults:
        waits = (appends.next_after(fault.at), pulls.next_after(fault.at), visible.next_after(fault.at))
        row = longest[f"{' + '.join(fault.targets)}, {fault.action}"]
        for i, wait in enumerate(waits):
            row[i] = max(filter(None, (row[i], wait)), default=None)
    yield "longest wait after a fault, in seconds, until     append     pull  new is visible"
    for name, row in sorted(longest.items()):
        yield f"  {name:46}" + "".join(f"{'-' if wait is None else f'{wait:.1f}':>9}" for wait in row)


class _Successes:
    """Successful operations: the time until the first success that began after a given time."""

    def __init__(self, spans: Iterable[tuple[float, float | None]]) -> None:
        rows = sorted((invoked, completed) for invoked, completed in spans if completed is not None)
        self._invoked = [invoked for invoked, _ in rows]
        self._first: list[float] = []  # the earliest completion of all that began then or later
        for _, completed in reversed(rows):
            self._first.append(min(completed, self._first[-1]) if self._first else completed)
        self._first.reverse()

    def next_after(self, time: float) -> float | None:
        at = bisect_right(self._invoked, time)
        return self._first[at] - time if at < len(self._first) else None


class _Visibility:
    """The time until a message is visible that was sent after a given time.

    A duplicate may have been visible before.
    """

    def __init__(self, facts: Facts) -> None:
        new = [append for append in facts.acknowledged if not append.duplicate]
        rows = sorted((append.invoked, append.end_physical_offset or 0) for append in new)
        self._times = [time for time, _ in rows]
        self._least: list[int] = []  # the least end of all sent then or later
        for _, end in reversed(rows):
            self._least.append(min(end, self._least[-1]) if self._least else end)
        self._least.reverse()
        self._watermarks: list[int] = []
        self._told_at: list[float] = []
        for answer in sorted(facts.answers, key=lambda answer: answer.completed):
            if answer.outcome == OK and answer.watermark is not None:
                self._told_at.append(answer.completed)
                self._watermarks.append(max(answer.watermark, self._watermarks[-1] if self._watermarks else 0))

    def next_after(self, time: float) -> float | None:
        at = bisect_right(self._times, time)
        if at == len(self._times):
            return None
        told = bisect_right(self._watermarks, self._least[at] - 1)
        return self._told_at[told] - time if told < len(self._told_at) else None
