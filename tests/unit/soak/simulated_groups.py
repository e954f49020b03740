"""Consumer groups that keep their promises over a simulated service, with re-created topics and dead letters."""

from __future__ import annotations

from typing import TypeVar

from tests.soak.facts import Queue
from tests.soak.group_events import (
    Committed,
    DeadLetter,
    Delivery,
    Handed,
    Handled,
    Positioned,
    Subscription,
    TopicChange,
)
from tests.soak.history import Operation, Seen
from tests.unit.soak.simulated import Simulated

READERS, MAILING, MAX_ATTEMPTS = "readers", "mailing", 3
E = TypeVar("E", bound=Operation)
RETRY = f"%RETRY%{MAILING}"


class SimulatedGroups:
    """Group `readers` polls `orders`, group `mailing` handles it. Each operation takes one tick of the service."""

    def __init__(self, service: Simulated) -> None:
        self.service = service
        self.next: dict[tuple[str, Queue], int] = {}
        self._retries = 0
        self.add(Subscription(READERS, ("orders", "fleeting")))

    def with_handlers(self) -> SimulatedGroups:
        """Add the group `mailing`."""
        self.add(Subscription(MAILING, ("orders",), MAX_ATTEMPTS))
        return self

    def add(self, event: E) -> E:
        """Let one tick pass and record *event*."""
        self.service.clock += 1
        self.service.history.append(event)
        return event

    def poll(self, topic: str = "orders", queue_id: int = 0, most: int = 10, *, client: str = "reader.1") -> Delivery:
        """Hand out the next messages of one queue to the group `readers`."""
        queue = Queue(topic, queue_id)
        first = self.next.get((READERS, queue), 0)
        messages = tuple(handed(queue, seen) for seen in self.service.queues[queue][first : first + most])
        self.next[READERS, queue] = first + len(messages)
        now = self.service.clock
        return self.add(Delivery(client, READERS, "poll", now, now + 0.5, messages))

    def seek(self, queue_offset: int | None, topic: str = "orders", queue_id: int = 0) -> Positioned:
        """Seek, or with None an assignment at the position."""
        if queue_offset is not None:
            self.next[READERS, Queue(topic, queue_id)] = queue_offset
        return self.add(Positioned("reader.1", READERS, self.service.clock, topic, queue_id, queue_offset))

    def commit(self, offset: int, group: str = READERS, topic: str = "orders", queue_id: int = 0) -> Committed:
        """Record an offset that the group has committed."""
        now = self.service.clock
        return self.add(Committed(group, now, now + 0.5, ((topic, queue_id, offset),)))

    def handle(self, content: str, *, failures: int = 0) -> list[Handled]:
        """Handle a message of `orders` by `mailing` until an attempt succeeds or all have failed."""
        place = next(seen for seen in self.service.queues[Queue("orders", 0)] if seen.content == content)
        attempts: list[Handled] = []
        for attempt in range(MAX_ATTEMPTS):
            message = handed(Queue("orders", 0), place)
            if attempt:
                message = Handed(RETRY, 0, self._retries, content, attempt)
                self._retries += 1
            failed = attempt < failures
            attempts.append(self.add(Handled("mailer.1", MAILING, self.service.clock, message, failed)))
            if not failed:
                return attempts
        self.dead_letter(content)
        return attempts

    def dead_letter(self, content: str, *, offset: int = 0, message_id: str = "id") -> DeadLetter:
        """Record a dead letter of `mailing`."""
        letter = Handed(f"%DLQ%{MAILING}", 0, offset, content, MAX_ATTEMPTS, message_id)
        return self.add(DeadLetter(MAILING, letter))

    def recreate(self, topic: str = "fleeting") -> None:
        """Delete *topic* and create it again; its queue offsets continue, and its old messages are gone."""
        for action in ("deleted", "created"):
            now = self.service.clock
            self.add(TopicChange(topic, action, now, now + 0.5))
        for queue in self.service.queues:
            if queue.topic == topic:
                self.next[READERS, queue] = len(self.service.queues[queue])


def handed(queue: Queue, seen: Seen) -> Handed:
    """Return the message as a member gets it."""
    return Handed(queue.topic, queue.queue_id, seen.queue_offset, seen.content)
