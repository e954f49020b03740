"""QueueChoice: which queue of a route a message goes to (docs/format.md §15)."""

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
    """Round robin with a turn of each thread's own, which begins anywhere; avoids writers that are down.

    avoid_slow  whether writers that answer late are avoided, too, while others are not late
    """

    def __init__(self, writers: Writers, *, avoid_slow: bool) -> None:
        self._writers = writers
        self._avoid_slow = avoid_slow
        self._local = threading.local()

    def by_key(self, topic: str, key: str) -> MessageQueue:
        """|hashCode(key)| mod queues, whichever writers are up: the messages of a key stay in one queue."""
        queues = _require_queues(self._writers.routes.route(topic), topic)
        return queues[queue_of_key(key, len(queues))]

    def named(self, topic: str, queue_id: int) -> MessageQueue:
        """The queue of this number, where it can be only one; of a single writer it need not exist.

        raises QueueIllegalError where there is none, ArgumentIllegalError where several writers have the topic
        """
        links = self._writers.links()
        if len(links) == 1:
            return MessageQueue(topic, links[0].address, queue_id)
        queues = _require_queues(self._writers.routes.route(topic), topic)
        if len({queue.writer for queue in queues}) > 1:
            raise ArgumentIllegalError("several writers have this topic: give a MessageQueue", argument="queue_id")
        found = [queue for queue in queues if queue.queue_id == queue_id]
        if not found:
            raise QueueIllegalError("no such queue", queue_id=queue_id, queues=len(queues))
        return found[0]

    def next(self, route: Route, topic: str, *, avoid: str | None = None) -> MessageQueue:
        """The next one in turn, if it can be of a writer that is well, and not the one at *avoid*."""
        queues = _require_queues(route, topic)
        turns = self._turns()
        if len(self._writers.by_address) > 1:
            for is_wanted in self._wishes(avoid):
                for _ in queues:
                    queue = queues[next(turns) % len(queues)]
                    if is_wanted(queue):
                        return queue
        return queues[next(turns) % len(queues)]

    def _wishes(self, avoid: str | None) -> Iterator[_Wanted]:
        """From the best to the least."""
        link = self._writers.link

        def is_other(queue: MessageQueue) -> bool:
            return queue.writer != avoid

        def is_up(queue: MessageQueue) -> bool:
            return is_other(queue) and not link(queue.writer).stream.is_down

        if self._avoid_slow:
            yield lambda queue: is_up(queue) and not link(queue.writer).is_slow()
        yield is_up
        yield is_other

    def _turns(self) -> Iterator[int]:
        turns: Iterator[int] | None = getattr(self._local, "turns", None)
        if turns is None:
            turns = self._local.turns = itertools.count(random.randrange(1 << 16))
        return turns


def _require_queues(route: Route, topic: str) -> tuple[MessageQueue, ...]:
    if not route.queues:
        raise TopicForbiddenError("the topic has no queue that takes messages", topic=topic)
    return route.queues
