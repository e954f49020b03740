"""Facts: a history read once, in the orders that the rules need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

from tests.soak.group_events import (
    ClientError,
    Committed,
    DeadLetter,
    Delivery,
    Handled,
    Positioned,
    Subscription,
    TopicChange,
)
from tests.soak.history import ACKNOWLEDGED, OK, Answer, Append, Fault, Operation, Seen


class Queue(NamedTuple):
    """A queue's name."""

    topic: str
    queue_id: int


class Violation(NamedTuple):
    """A broken promise with its evidence."""

    rule: str
    text: str


class Sighting(NamedTuple):
    """A message in an answer."""

    queue: Queue
    seen: Seen
    answer: Answer


class Facts:
    """The data that rules use."""

    def __init__(self, history: Iterable[Operation]) -> None:
        kinds: defaultdict[type[Operation], list[Any]] = defaultdict(list)
        self.positions: defaultdict[str, list[Delivery | Positioned]] = defaultdict(list)  # by client, in its order
        for operation in history:
            kinds[type(operation)].append(operation)
            if isinstance(operation, Delivery | Positioned):
                self.positions[operation.client].append(operation)
        self.appends: list[Append] = kinds[Append]
        self.answers: list[Answer] = kinds[Answer]
        self.faults: list[Fault] = kinds[Fault]
        self.subscriptions: dict[str, Subscription] = {one.group: one for one in kinds[Subscription]}
        self.deliveries: list[Delivery] = kinds[Delivery]
        self.handled: list[Handled] = kinds[Handled]
        self.commits: list[Committed] = kinds[Committed]
        self.dead_letters: list[DeadLetter] = list(dict.fromkeys(kinds[DeadLetter]))  # they are read several times
        self.topic_changes: list[TopicChange] = kinds[TopicChange]
        self.client_errors: list[ClientError] = kinds[ClientError]

    @cached_property
    def acknowledged(self) -> list[Append]:
        """Return the appends with a place."""
        return [append for append in self.appends if append.outcome == ACKNOWLEDGED]

    @cached_property
    def kept(self) -> list[Append]:
        """Return the acknowledged appends whose topic was not deleted afterwards."""
        return [append for append in self.acknowledged if not self.is_gone(append)]

    @cached_property
    def churned(self) -> frozenset[str]:
        """Return the topics that were deleted or created during the run."""
        return frozenset(change.topic for change in self.topic_changes)

    @cached_property
    def deletions(self) -> dict[str, list[TopicChange]]:
        """Return the deletions of each topic, in order."""
        deletions: defaultdict[str, list[TopicChange]] = defaultdict(list)
        for change in sorted(self.topic_changes, key=lambda change: change.completed):
            if change.action == "deleted":
                deletions[change.topic].append(change)
        return deletions

    def is_gone(self, append: Append) -> bool:
        """Return True if the append's topic was deleted after the append had begun."""
        return any(change.completed > append.invoked for change in self.deletions.get(append.topic, ()))

    def incarnation(self, append: Append) -> int:
        """Return how often the append's topic had been deleted before the append began."""
        return sum(change.completed <= append.invoked for change in self.deletions.get(append.topic, ()))

    @cached_property
    def sent(self) -> dict[str, Append]:
        """Return by content the append that contains it."""
        return {content: append for append in self.appends for content in append.contents}

    @cached_property
    def right(self) -> list[Answer]:
        """Return the answers without failure."""
        return [answer for answer in self.answers if answer.outcome == OK]

    def sightings(self, *, final_only: bool = False) -> Iterator[Sighting]:
        """Yield every message of every answer."""
        for answer in self.right:
            if answer.final or not final_only:
                for seen in answer.seen:
                    yield Sighting(Queue(answer.topic, seen.queue_id), seen, answer)

    @cached_property
    def final(self) -> dict[Queue, dict[int, Seen]]:
        """Return the content of each queue at the end, by queue offset."""
        queues: defaultdict[Queue, dict[int, Seen]] = defaultdict(dict)
        for queue, seen, _ in self.sightings(final_only=True):
            queues[queue].setdefault(seen.queue_offset, seen)
        return queues

    @cached_property
    def first_seen(self) -> dict[str, Sighting]:
        """Return the first sighting by content."""
        found: dict[str, Sighting] = {}
        for sighting in self.sightings():
            found.setdefault(sighting.seen.content, sighting)
        return found

    @cached_property
    def by_queue(self) -> dict[Queue, list[Append]]:
        """Return the kept appends of each queue, by queue offset."""
        queues: defaultdict[Queue, list[Append]] = defaultdict(list)
        for append in self.kept:
            queues[Queue(append.topic, append.queue_id)].append(append)
        for appends in queues.values():
            appends.sort(key=first_offset)
        return queues

    def place_of(self, append: Append) -> int | None:
        """Return the queue offset of its first message: acknowledged, otherwise as it was seen; None if neither."""
        if append.outcome == ACKNOWLEDGED:
            return append.queue_offset
        seen = self.first_seen.get(append.contents[0])
        return None if seen is None else seen.seen.queue_offset


def first_offset(append: Append) -> int:
    """Return the queue offset of an acknowledged append's first message."""
    assert append.queue_offset is not None, "it was acknowledged"
    return append.queue_offset


def record_at(append: Append, index: int) -> tuple[int, int]:
    """Return (start, end) of the record of message *index* of an acknowledged append; an inner batch has one record."""
    assert append.end_physical_offset is not None, "it was acknowledged"
    starts = append.physical_offsets
    record = index if len(starts) == len(append.contents) else 0
    return starts[record], starts[record + 1] if record + 1 < len(starts) else append.end_physical_offset
