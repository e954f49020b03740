"""Order within a queue: a message that was acknowledged before another one's send began precedes it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import inf

from tests.soak.facts import Facts, Queue
from tests.soak.history import Append


def reordered(facts: Facts) -> Iterator[str]:
    """Compare appends that do not overlap by time, and those of a producer that numbers its sends by number."""
    queues: defaultdict[Queue, list[tuple[int, Append]]] = defaultdict(list)
    for append in facts.appends:
        place = facts.place_of(append)
        if place is not None:
            queues[Queue(append.topic, append.queue_id)].append((place, append))
    for queue, appends in queues.items():
        appends.sort(key=lambda row: row[0])
        yield from _against_time(queue, appends)
        yield from _against_sequence(queue, appends)


def _against_time(queue: Queue, appends: list[tuple[int, Append]]) -> Iterator[str]:
    latest: tuple[int, Append] | None = None  # of those with lower offsets, the one that began last
    for place, append in appends:
        if latest is not None and (inf if append.completed is None else append.completed) < latest[1].invoked:
            yield (
                f"{queue}: {append.contents[0]} at {place} was answered before {latest[1].contents[0]} at {latest[0]}"
                " was sent"
            )
        if latest is None or append.invoked > latest[1].invoked:
            latest = (place, append)


def _against_sequence(queue: Queue, appends: list[tuple[int, Append]]) -> Iterator[str]:
    greatest: dict[str, tuple[int, int]] = {}
    for place, append in appends:
        if append.sequence is None:
            continue
        known, at = greatest.get(append.client, (-1, -1))
        if append.sequence < known:
            yield f"{queue}: {append.client}'s send {append.sequence} is at {place}, its send {known} at {at}"
        else:
            greatest[append.client] = (append.sequence, place)


def compare_and_append(facts: Facts) -> Iterator[str]:
    """Report one stored at another offset than expected, or refused with a next offset below an acknowledged one."""
    for append in facts.acknowledged:
        if append.expected_next_offset not in (None, append.queue_offset):
            yield f"{append.contents[0]} was to be stored at {append.expected_next_offset}: {append.queue_offset}"
    for append in facts.appends:
        if append.actual_next_offset is None:
            continue
        for other in facts.by_queue.get(Queue(append.topic, append.queue_id), ()):
            end = (other.queue_offset or 0) + len(other.contents)
            if other.completed is not None and other.completed < append.invoked and end > append.actual_next_offset:
                yield f"{append.contents[0]} was refused: next is {append.actual_next_offset}; {end - 1} was taken"
                break
