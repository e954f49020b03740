"""Facts: a history looked through once, in the orders in which rules ask for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from tests.soak.history import ACKNOWLEDGED, OK, Answer, Append, Fault, Operation, Seen


class Queue(NamedTuple):
    """A queue's name."""

    topic: str
    queue_id: int


class Violation(NamedTuple):
    """A promise that was broken, and by what."""

    rule: str
    text: str


class Sighting(NamedTuple):
    """A message in an answer."""

    queue: Queue
    seen: Seen
    answer: Answer


class Facts:
    """What rules look at."""

    def __init__(self, history: Iterable[Operation]) -> None:
        self.appends: list[Append] = []
        self.answers: list[Answer] = []
        self.faults: list[Fault] = []
        for operation in history:
            match operation:
                case Append():
                    self.appends.append(operation)
                case Answer():
                    self.answers.append(operation)
                case Fault():
                    self.faults.append(operation)

    @cached_property
    def acknowledged(self) -> list[Append]:
        """Appends with a place."""
        return [append for append in self.appends if append.outcome == ACKNOWLEDGED]

    @cached_property
    def sent(self) -> dict[str, Append]:
        """By content: the append it was part of."""
        return {content: append for append in self.appends for content in append.contents}

    @cached_property
    def right(self) -> list[Answer]:
        """Answers that are no failure."""
        return [answer for answer in self.answers if answer.outcome == OK]

    def sightings(self, *, final_only: bool = False) -> Iterator[Sighting]:
        """Every message of every answer."""
        for answer in self.right:
            if answer.final or not final_only:
                for seen in answer.seen:
                    yield Sighting(Queue(answer.topic, seen.queue_id), seen, answer)

    @cached_property
    def final(self) -> dict[Queue, dict[int, Seen]]:
        """What lay in each queue at the end, by queue offset."""
        queues: defaultdict[Queue, dict[int, Seen]] = defaultdict(dict)
        for queue, seen, _ in self.sightings(final_only=True):
            queues[queue].setdefault(seen.queue_offset, seen)
        return queues

    @cached_property
    def first_seen(self) -> dict[str, Sighting]:
        """By content: where it was seen first."""
        found: dict[str, Sighting] = {}
        for sighting in self.sightings():
            found.setdefault(sighting.seen.content, sighting)
        return found

    @cached_property
    def by_queue(self) -> dict[Queue, list[Append]]:
        """Acknowledged appends of each queue, by queue offset."""
        queues: defaultdict[Queue, list[Append]] = defaultdict(list)
        for append in self.acknowledged:
            queues[Queue(append.topic, append.queue_id)].append(append)
        for appends in queues.values():
            appends.sort(key=first_offset)
        return queues

    def place_of(self, append: Append) -> int | None:
        """The queue offset of its first message: acknowledged, else as it was seen; None when neither."""
        if append.outcome == ACKNOWLEDGED:
            return append.queue_offset
        seen = self.first_seen.get(append.contents[0])
        return None if seen is None else seen.seen.queue_offset


def first_offset(append: Append) -> int:
    """Queue offset of an acknowledged append's first message."""
    assert append.queue_offset is not None, "it was acknowledged"
    return append.queue_offset


def record_at(append: Append, index: int) -> tuple[int, int]:
    """(start, end) of the record of message *index* of an acknowledged append: of all of them in an inner batch."""
    assert append.end_physical_offset is not None, "it was acknowledged"
    starts = append.physical_offsets
    record = index if len(starts) == len(append.contents) else 0
    return starts[record], starts[record + 1] if record + 1 < len(starts) else append.end_physical_offset
