"""Routes: which queues of a topic take messages, over all writers; asked for, remembered and refreshed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import grpc

from tidemark.client.errors.address_faults import PATIENCE_S
from tidemark.client.errors.grpc_errors import error_of_rpc
from tidemark.client.message_queue import MessageQueue
from tidemark.client.wire.topic_admin import BATCH_QUEUE
from tidemark.client.wire.writer_connection import WriterLink
from tidemark.errors import DeadlineExceededError, RejectedError, StoreError, WriterUnreachableError
from tidemark.v1 import topics_pb2

AGE_S = 30.0  # of a route, then it is asked for again, while the old one serves
INCOMPLETE_AGE_S = 2.0  # of a route that a writer has not answered yet
GRACE_S = 1.0  # for the other writers, once one has answered
_BATCH = next(iter(BATCH_QUEUE.items()))
_WRITABLE = 2
_UNREACHED = (DeadlineExceededError, WriterUnreachableError)


class Route(NamedTuple):
    """Queues that take messages of one topic: by store, writer and queue id. is_batch: whether one is a BatchCQ's."""

    queues: tuple[MessageQueue, ...]
    is_batch: bool


@dataclass(eq=False)
class _Asked:
    """What the writers have said of one topic. answers: by address; an error of a writer that has no such topic."""

    answers: dict[str, topics_pb2.GetRouteResponse | StoreError] = field(default_factory=dict)
    failures: dict[str, StoreError] = field(default_factory=dict)  # of writers that said nothing
    open: int = 0  # calls without an answer
    asked_at: float = float("-inf")
    answered_at: float | None = None  # the first of this round
    route: Route | None = None
    is_ready: bool = False  # every writer has had its time: before, a key would have another queue a moment later


class Routes:
    """Over the writers that *links* gives, now. Safe for several threads."""

    def __init__(self, links: Callable[[], Sequence[WriterLink]], *, timeout_s: float) -> None:
        self._links = links
        self._timeout_s = timeout_s
        self._topics: dict[str, _Asked] = {}
        self._changed = threading.Condition()

    def route(self, topic: str) -> Route:
        """The route of *topic*; waits for a first answer, later ones are taken as they come.

        raises what the writers refuse it with; WriterUnreachableError where none answers; TlsFailedError
        """
        return self.known(topic) or self._wait(topic)

    def known(self, topic: str) -> Route | None:
        """The same without waiting; None where nothing is known yet. Asks again when it is old."""
        asked = self._topics.get(topic)
        if asked is None:
            return None
        age = time.monotonic() - asked.asked_at
        if age > INCOMPLETE_AGE_S and (age > AGE_S or asked.failures):
            self._ask(topic, asked)
        return asked.route if asked.is_ready else None

    def forget(self, topic: str) -> None:
        """Wait for new answers next time: the topic turned out to be another."""
        with self._changed:
            self._topics.pop(topic, None)

    def forget_all(self) -> None:
        """The same of all topics: the writers are others."""
        with self._changed:
            self._topics.clear()

    def _wait(self, topic: str) -> Route:
        with self._changed:
            asked = self._topics.setdefault(topic, _Asked())
        self._ask(topic, asked)
        end = time.monotonic() + self._timeout_s
        with self._changed:
            patience_s = min(PATIENCE_S, self._timeout_s)
            self._changed.wait_for(lambda: not asked.open or asked.answered_at is not None, patience_s)
            is_silent = asked.open and asked.answered_at is None
        if is_silent:
            self._require_right_addresses(topic)
        with self._changed:
            while asked.open:
                until = end if asked.answered_at is None else min(end, asked.answered_at + GRACE_S)
                left = until - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            if asked.route is not None:
                asked.is_ready = True
                return asked.route
            self._topics.pop(topic, None)
        raise self._failure(asked)

    def _require_right_addresses(self, topic: str) -> None:
        """Raise at once where none of the addresses can be a writer's."""
        faults = [link.wrong_address() for link in self._links()]
        if faults and faults[0] is not None and None not in faults:
            with self._changed:
                self._topics.pop(topic, None)
            raise faults[0]

    def _failure(self, asked: _Asked) -> StoreError:
        """Why there is no route: what a writer said, else why none was reached."""
        said = [answer for answer in asked.answers.values() if isinstance(answer, StoreError)]
        failures = list(asked.failures.values())
        telling = [*said, *(failure for failure in failures if not isinstance(failure, _UNREACHED))]
        if telling:
            return telling[0]
        error = WriterUnreachableError("no writer has told where the topic is; nothing was sent")
        error.__cause__ = failures[0] if failures else None
        causes = (link.told_apart(error) for link in self._links())
        return next((cause for cause in causes if cause is not error), error)

    def _ask(self, topic: str, asked: _Asked) -> None:
        """Ask every writer, unless a round is under way; answers come in gRPC's threads."""
        links = self._links()
        with self._changed:
            if asked.open:
                return
            asked.open = len(links)
            asked.asked_at = time.monotonic()
            asked.answered_at = None
            for gone in asked.answers.keys() - {link.address for link in links}:
                del asked.answers[gone]
            asked.failures = {}
        for link in links:
            link.ask_route(topic).add_done_callback(partial(self._answered, asked, link.address))

    def _answered(self, asked: _Asked, address: str, call: grpc.Future[topics_pb2.GetRouteResponse]) -> None:
        error = _error_of(call)
        with self._changed:
            asked.open -= 1
            if error is None:
                asked.answers[address] = call.result()
            elif isinstance(error, RejectedError):
                asked.answers[address] = error
            else:
                asked.failures[address] = error
            if address in asked.answers and asked.answered_at is None:
                asked.answered_at = time.monotonic()
            asked.route = _route(asked.answers)
            self._changed.notify_all()


def _error_of(call: grpc.Future[topics_pb2.GetRouteResponse]) -> StoreError | None:
    try:
        failure = call.exception()
    except grpc.FutureCancelledError:
        return WriterUnreachableError("the connection was closed")
    return error_of_rpc(failure) if isinstance(failure, grpc.RpcError) else None


def _route(answers: Mapping[str, topics_pb2.GetRouteResponse | StoreError]) -> Route | None:
    """Of the writers that have the topic; else of those that would create it."""
    found = {address: answer for address, answer in answers.items() if not isinstance(answer, StoreError)}
    existing = {address: answer for address, answer in found.items() if not answer.would_create}
    chosen = existing or found
    if not chosen:
        return None
    kind, batch = _BATCH
    return Route(
        tuple(queue for _, queue in sorted(_queues(chosen))),
        any(answer.topic.attributes.get(kind) == batch for answer in chosen.values()),
    )


def _queues(answers: Mapping[str, topics_pb2.GetRouteResponse]) -> Iterable[tuple[str, MessageQueue]]:
    """With the store's name, by which they are sorted: it stays when an address changes."""
    for address, answer in answers.items():
        topic = answer.topic
        if topic.permission & _WRITABLE:
            for queue_id in range(topic.write_queue_count):
                yield answer.store_name, MessageQueue(topic.name, address, queue_id)
