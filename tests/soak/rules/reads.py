"""Readers see only sent messages, always the same, nothing above the watermark, everything below it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from tests.soak.facts import Facts, Queue, first_offset, record_at
from tests.soak.history import REFUSED, Append, Seen


def phantom(facts: Facts) -> Iterator[str]:
    """Report a message that no client sent there, whose body differs, or whose append was refused."""
    told: set[str] = set()
    for queue, seen, answer in facts.sightings():
        append = facts.sent.get(seen.content)
        if append is None:
            why = "was never sent"
        elif append.outcome == REFUSED:
            why = f"was refused ({append.reason})"
        elif Queue(append.topic, append.queue_id) != queue:
            why = f"was sent to {append.topic}/{append.queue_id}"
        else:
            continue
        if seen.content not in told:
            told.add(seen.content)
            yield f"{answer.client} ({answer.kind}) read {seen.content} in {queue} at {seen.queue_offset}: it {why}"


def changed(facts: Facts) -> Iterator[str]:
    """Report an offset that showed different messages to two readers, or at two times."""
    known: dict[tuple[Queue, int], Seen] = {}
    told: set[tuple[Queue, int]] = set()
    for queue, seen, answer in facts.sightings():
        place = (queue, seen.queue_offset)
        first = known.setdefault(place, seen)
        if first[:5] != seen[:5] and place not in told:
            told.add(place)
            yield f"{queue} at {seen.queue_offset} was {first}, {answer.client} ({answer.kind}) read {seen}"


def above_the_watermark(facts: Facts) -> Iterator[str]:
    """Report a message that ends above the watermark of its answer, and a watermark above the committed offset."""
    ends = _record_ends(facts)
    for answer in facts.right:
        if answer.watermark is None:
            continue
        if answer.committed is not None and answer.watermark > answer.committed:
            yield f"{answer.client} got watermark {answer.watermark}, and committed {answer.committed}"
        for seen in answer.seen:
            end = seen.end_offset or ends.get(seen.physical_offset, seen.physical_offset + 1)
            if end > answer.watermark:
                yield (
                    f"{answer.client} ({answer.kind}) read {seen.content} at {answer.topic}/{seen.queue_id}/"
                    f"{seen.queue_offset}, which ends at {end}: the watermark was {answer.watermark}"
                )


def hidden(facts: Facts) -> Iterator[str]:
    """Report an answer whose watermark covers a message that its max_offset does not."""
    index = {queue: _Ends(appends) for queue, appends in facts.by_queue.items()}
    for answer in facts.right:
        if answer.max_offset is None or answer.watermark is None or answer.queue_id is None:
            continue
        ends = index.get(Queue(answer.topic, answer.queue_id))
        covered = 0 if ends is None else ends.covered(answer.watermark)
        if answer.max_offset < covered:
            yield (
                f"{answer.client} ({answer.kind}) got max_offset {answer.max_offset} for "
                f"{answer.topic}/{answer.queue_id}, but watermark {answer.watermark} covers messages up to {covered}"
            )


class _Ends:
    """The messages of one queue below a physical offset."""

    def __init__(self, appends: list[Append]) -> None:
        rows = sorted(
            (record_at(append, i)[1], first_offset(append) + i + 1)
            for append in appends
            for i in range(len(append.contents))
        )
        self._physical = [end for end, _ in rows]
        self._queue: list[int] = []
        for _, end in rows:
            self._queue.append(max(end, self._queue[-1] if self._queue else 0))

    def covered(self, watermark: int) -> int:
        count = bisect_right(self._physical, watermark)
        return self._queue[count - 1] if count else 0


def _record_ends(facts: Facts) -> dict[int, int]:
    ends: dict[int, int] = {}
    for append in facts.acknowledged:
        for i in range(len(append.physical_offsets)):
            start, end = record_at(append, i)
            ends[start] = end
    return ends
