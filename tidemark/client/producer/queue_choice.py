"""QueueChoice: chooses a message's queue (docs/format.md §15)."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator

from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer.topic_routes import Route
from tidemark.client.producer.writer_pool import Writers
from tidemark.errors import ArgumentIllegalError, QueueIllegalError, TopicForbiddenError
from tidemark.format.primitives import queue_of_key

_Wanted = Callable[[MessageQueue], bool]


class QueueChoice:
    """Round robin per thread, from a random start; avoids writers that do not answer.

    avoid_slow  also avoid writers that answer late, if others answer in time
    """

    def __init__(self, writers: Writers, *, avoid_slow: bool) -> None:
        self._writers = writers
        self._avoid_slow = avoid_slow
        self._local = threading.local()

    def by_key(self, topic: str, key: str) -> MessageQueue:
        """Return queue |hashCode(key)| mod queues. It ignores outages, so that a key's messages stay in one queue."""
        queues = _require_queues(self._writers.routes.route(topic), topic)
        return queues[queue_of_key(key, len(queues))]

    def named(self, topic: str, queue_id: int) -> MessageQueue:
        """Return the queue with this number. With a single writer, it need not exist.

        raises QueueIllegalError if it does not exist, ArgumentIllegalError if several writers have the topic
        """
        links = self._writers.links()
        if len(links) == 1:
            return MessageQueue(topic, links[0].address, queue_id)
        queues = _require_queues(self._writers.routes.route(topic), topic)
        if len({queue.writer for queue in queues}) > 1:
            raise ArgumentIllegalError(
                "several writers have this topic, so a number is ambiguous: give a MessageQueue", argument="queue_id"
            )
        found = [queue for queue in queues if queue.queue_id == queue_id]
        if not found:
            raise QueueIllegalError(
                f"queue {queue_id} does not accept messages of the topic", queue_id=queue_id, queues=len(queues)
            )
        return found[0]

    def next(self, route: Route, topic: str, *, avoid: str | None = None) -> MessageQueue:
        """Return the next queue in turn, if possible of a healthy writer and not of the writer at *avoid*."""
        queues = route.queues or _require_queues(route, topic)
        turns: Iterator[int] = getattr(self._local, "turns", None) or self._begin_turns()
        if len(self._writers.by_address) > 1:
            for is_wanted in self._wishes(avoid):
                for _ in queues:
                    queue = queues[next(turns) % len(queues)]
                    if is_wanted(queue):
                        return queue
        return queues[next(turns) % len(queues)]

    def _wishes(self, avoid: str | None) -> Iterator[_Wanted]:
        """Yield conditions on the queue, from the strictest to the weakest."""
        link = self._writers.link

        def is_other(queue: MessageQueue) -> bool:
            return queue.writer != avoid

        def is_up(queue: MessageQueue) -> bool:
            return is_other(queue) and not link(queue.writer).stream.is_down

        if self._avoid_slow:
            yield lambda queue: is_up(queue) and not link(queue.writer).is_slow()
        yield is_up
        yield is_other

    def _begin_turns(self) -> Iterator[int]:
        turns = self._local.turns = itertools.count(random.randrange(1 << 16))
        return turns


def _require_queues(route: Route, topic: str) -> tuple[MessageQueue, ...]:
    if not route.queues:
        raise TopicForbiddenError("the topic has no queue that accepts messages", topic=topic)
    return route.queues
