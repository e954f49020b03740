"""Routes: the queues of a topic that accept messages, over all writers; requested, cached and refreshed."""

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

AGE_S = 30.0  # age at which a route is requested again; the old one is used meanwhile
INCOMPLETE_AGE_S = 2.0  # the same for a route that lacks a writer's answer
GRACE_S = 1.0  # wait for the other writers after the first answer
_BATCH = next(iter(BATCH_QUEUE.items()))
_WRITABLE = 2
_UNREACHED = (DeadlineExceededError, WriterUnreachableError)


class Route(NamedTuple):
    """The queues of a topic that accept messages, by store and queue id. is_batch: True if one is a BatchCQ queue."""

    queues: tuple[MessageQueue, ...]
    is_batch: bool


@dataclass(eq=False)
class _WriterAnswers:
    """The writers' answers for one topic. answers: by address; a StoreError from a writer without the topic."""

    answers: dict[str, topics_pb2.GetRouteResponse | StoreError] = field(default_factory=dict)
    failures: dict[str, StoreError] = field(default_factory=dict)  # by address, of writers that did not answer
    open: int = 0  # calls in progress
    asked_at: float = float("-inf")
    answered_at: float | None = None  # time of this round's first answer
    route: Route | None = None
    is_ready: bool = False  # every writer had time to answer: an earlier use could map a key to another queue


class Routes:
    """Routes over the current writers, which *links* returns. Thread-safe."""

    def __init__(self, links: Callable[[], Sequence[WriterLink]], *, timeout_s: float) -> None:
        self._links = links
        self._timeout_s = timeout_s
        self._topics: dict[str, _WriterAnswers] = {}
        self._changed = threading.Condition()

    def route(self, topic: str) -> Route:
        """Return the route of *topic*. Wait for its first answer; later calls use the answers so far.

        raises the writers' refusal; WriterUnreachableError if none answers; TlsFailedError
        """
        return self.known(topic) or self._wait(topic)

    def known(self, topic: str, now: float | None = None) -> Route | None:
        """Return the known route without waiting; None if there is none. Request it again if it is old.

        now: time.monotonic(); default: it is read
        """
        asked = self._topics.get(topic)
        if asked is None:
            return None
        age = (time.monotonic() if now is None else now) - asked.asked_at
        if age > INCOMPLETE_AGE_S and (age > AGE_S or asked.failures):
            self._ask(topic, asked)
        return asked.route if asked.is_ready else None

    def forget(self, topic: str) -> None:
        """Forget the route of *topic*, so that the next call waits for new answers: the topic has changed."""
        with self._changed:
            self._topics.pop(topic, None)

    def forget_all(self) -> None:
        """Forget all routes: the list of writers has changed."""
        with self._changed:
            self._topics.clear()

    def _wait(self, topic: str) -> Route:
        with self._changed:
            asked = self._topics.setdefault(topic, _WriterAnswers())
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
        """Raise at once if none of the addresses can be a writer's."""
        faults = [link.wrong_address() for link in self._links()]
        if faults and faults[0] is not None and None not in faults:
            with self._changed:
                self._topics.pop(topic, None)
            raise faults[0]

    def _failure(self, asked: _WriterAnswers) -> StoreError:
        """Return the reason for a missing route: a writer's refusal, or why no writer was reached."""
        said = [answer for answer in asked.answers.values() if isinstance(answer, StoreError)]
        failures = list(asked.failures.values())
        telling = [*said, *(failure for failure in failures if not isinstance(failure, _UNREACHED))]
        if telling:
            return telling[0]
        error = WriterUnreachableError("no writer has answered with a route for the topic; nothing was sent")
        error.__cause__ = failures[0] if failures else None
        causes = (link.with_cause(error) for link in self._links())
        return next((cause for cause in causes if cause is not error), error)

    def _ask(self, topic: str, asked: _WriterAnswers) -> None:
        """Request the route from every writer, unless a round is in progress; answers arrive in gRPC's threads."""
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
            link.ask_route(topic).add_done_callback(partial(self._answered, asked, link))

    def _answered(
        self, asked: _WriterAnswers, link: WriterLink, call: grpc.Future[topics_pb2.GetRouteResponse]
    ) -> None:
        error, address = _error_of(call), link.address
        with self._changed:
            asked.open -= 1
            if error is None:
                answer = asked.answers[address] = call.result()
                link.offer(answer.remoting_address)
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
    """Return the route over the writers that have the topic, or else over those that would create it."""
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
    """Yield each queue with its store's name as the sort key, because a store's address may change."""
    for address, answer in answers.items():
        topic = answer.topic
        if topic.permission & _WRITABLE:
            for queue_id in range(topic.write_queue_count):
                yield answer.store_name, MessageQueue(topic.name, address, queue_id)
