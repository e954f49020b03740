"""An acknowledged message is stored once, at its acknowledged place."""

from __future__ import annotations

from collections.abc import Iterator

from tests.soak.facts import Facts, Queue, first_offset, record_at
from tests.soak.history import Append


def lost(facts: Facts) -> Iterator[str]:
    """Report acknowledged messages of topics that still exist, which the final reading did not find."""
    kept = {seen.content for messages in facts.final.values() for seen in messages.values()}
    for append in facts.kept:
        for i, content in enumerate(append.contents):
            if content not in kept:
                yield f"{content} was acknowledged at {_place(append, i)} and is gone"


def doubled(facts: Facts) -> Iterator[str]:
    """Report a message in two places."""
    places: dict[str, tuple[Queue, int]] = {}
    told: set[str] = set()
    for queue, seen, _ in facts.sightings():
        first = places.setdefault(seen.content, (queue, seen.queue_offset))
        if first != (queue, seen.queue_offset) and seen.content not in told:
            told.add(seen.content)
            yield f"{seen.content} is at {_name(*first)} and at {_name(queue, seen.queue_offset)}"


def misplaced(facts: Facts) -> Iterator[str]:
    """Report a place that was acknowledged for two messages, or that does not hold the acknowledged one."""
    owners: dict[tuple[Queue, int], tuple[Append, int]] = {}
    for append in facts.acknowledged:
        queue = Queue(append.topic, append.queue_id)
        for i, content in enumerate(append.contents):
            other, j = owners.setdefault((queue, first_offset(append) + i), (append, i))
            if other is not append:
                yield f"{_place(append, i)} was acknowledged for {other.contents[j]} and for {content}"
    told: set[tuple[Queue, int]] = set()
    for queue, seen, answer in facts.sightings():
        place = (queue, seen.queue_offset)
        if place not in owners or place in told:
            continue
        append, i = owners[place]
        expected = (append.contents[i], record_at(append, i)[0], append.store_ms)
        found = (seen.content, seen.physical_offset, seen.store_ms)
        if found != expected:
            told.add(place)
            yield f"{_name(*place)} was acknowledged as {expected}, {answer.client} ({answer.kind}) read {found}"


def _place(append: Append, index: int) -> str:
    return _name(Queue(append.topic, append.queue_id), first_offset(append) + index)


def _name(queue: Queue, queue_offset: int) -> str:
    return f"{queue.topic}/{queue.queue_id}/{queue_offset}"
