"""Fetcher: concurrent long pulls; yields answers as they arrive. Runs in the caller's thread.

The service holds a pull until there are messages, so an idle queue costs only a socket. With many queues, one pull
covers up to a thousand of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import starmap

from tidemark.client.consumer.wakeup import Bell
from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.connections import Answer, Connections, SentRequest
from tidemark.client.rest.page_answer import HttpFetched, JsonFetched, fetched_of
from tidemark.client.rest.pull_many import From, ask_for_many
from tidemark.client.rest.query import messages_path
from tidemark.errors import UnavailableError
from tidemark.tls.credentials import Credentials

_FEW, _MOST_PULLS = 16, 64  # up to 16 new queues, and 64 pulls in all, are pulled one by one
_QUEUES_A_PULL = 1000
_FIRST_DELAY_S, _GREATEST_DELAY_S = 0.05, 2.0


class _Pull:
    """One request in flight. offsets: by queue that it covers and that is still wanted."""

    def __init__(self, asked: SentRequest, offsets: dict[TopicQueue, int | str], *, is_of_many: bool) -> None:
        self.asked = asked
        self.offsets = offsets
        self.is_of_many = is_of_many

    def fetched(self, answer: Answer, accept: str) -> Iterator[HttpFetched | JsonFetched]:
        """Yield the answer of each queue; a refusal of the whole request counts for its first queue."""
        if self.is_of_many and not answer.is_error:
            yield from fetched_of(answer, accept)
        else:
            yield HttpFetched(next(iter(self.offsets)), answer)


class Fetcher:
    """Pulls from one query service.

    accept         form of the answers
    parameters     parameters of every pull: max_messages, max_bytes, tag, wait_ms, ...
    credentials    default: from the environment
    tagged_topics  topics to which the parameter `tag` applies; None: all

    If the service does not answer, pulls are repeated with growing pauses, up to 2 s.
    """

    def __init__(
        self,
        url: str,
        *,
        accept: str,
        parameters: Mapping[str, object],
        timeout_s: float,
        credentials: Credentials | None = None,
        tagged_topics: frozenset[str] | None = None,
    ) -> None:
        self._connections = Connections(url, timeout_s=timeout_s, kept=_MOST_PULLS, credentials=credentials)
        self._accept = accept
        self._parameters = dict(parameters)
        self._tagged_topics = tagged_topics
        self._wanted: dict[TopicQueue, int | str] = {}  # not requested yet
        self._by_queue: dict[TopicQueue, _Pull] = {}
        self._pulls: set[_Pull] = set()
        self._failures = 0
        self._not_before = 0.0
        self.is_patient = self._connections.count > 1  # another member of a group may answer
        self.unreachable: tuple[float, UnavailableError] | None = None
        self._bell = Bell()

    @property
    def descriptors(self) -> list[int]:
        """See `Pulls.descriptors`."""
        return [self._bell.descriptor, *(pull.asked.fileno() for pull in self._pulls)]

    def want(self, queue: TopicQueue, offset: int | str) -> None:
        """Request the messages of *queue* from *offset* on with the next call of `fetched`."""
        pull = self._by_queue.get(queue)
        if pull is None or pull.offsets[queue] != offset:
            self.drop(queue)
            self._wanted[queue] = offset

    def drop(self, queue: TopicQueue) -> None:
        """Stop requesting messages of *queue*."""
        self._wanted.pop(queue, None)
        pull = self._by_queue.pop(queue, None)
        if pull is not None:
            del pull.offsets[queue]
            if not pull.offsets and pull in self._pulls:
                self._pulls.remove(pull)
                pull.asked.close()

    def keep_only(self, queues: frozenset[TopicQueue]) -> None:
        """Drop all queues that are not in *queues*."""
        for queue in (self._by_queue.keys() | self._wanted.keys()) - queues:
            self.drop(queue)

    def fetched(self, timeout_s: float) -> Iterator[HttpFetched | JsonFetched]:
        """Yield the answers that have arrived; wait for the first one until *timeout_s* or `wake`."""
        self._ask()
        for pull in self._answered(timeout_s):
            if pull not in self._pulls:  # dropped meanwhile
                continue
            self._pulls.remove(pull)
            try:
                answer = pull.asked.answer()
                self._failures = 0
                self.unreachable = None
                for fetched in pull.fetched(answer, self._accept):
                    if self._by_queue.get(fetched.queue) is pull:
                        del self._by_queue[fetched.queue]
                        yield fetched
            except UnavailableError as error:
                self.failed(error)
            finally:
                self._forget(pull)

    def _forget(self, pull: _Pull) -> None:
        """Remove the finished *pull*, so that queues without an answer can be requested again."""
        for queue in pull.offsets:
            if self._by_queue.get(queue) is pull:
                del self._by_queue[queue]

    def _ask(self) -> None:
        """Send pulls for all wanted queues."""
        if not self._wanted or time.monotonic() < self._not_before:
            return
        wanted, self._wanted = self._wanted, {}
        is_few = len(wanted) <= _FEW and len(self._pulls) + len(wanted) <= _MOST_PULLS
        each = 1 if is_few else _QUEUES_A_PULL
        tagged = [queue for queue in wanted if self._is_tagged(queue)]
        untagged = [queue for queue in wanted if not self._is_tagged(queue)]
        for queues in (tagged, untagged):
            for start in range(0, len(queues), each):
                try:
                    self._ask_for({queue: wanted[queue] for queue in queues[start : start + each]})
                except UnavailableError as error:
                    self.failed(error)
                    return

    def _is_tagged(self, queue: TopicQueue) -> bool:
        return self._tagged_topics is None or queue.topic in self._tagged_topics

    def _ask_for(self, offsets: dict[TopicQueue, int | str]) -> None:
        """Send one pull. Either all of its queues are in tagged topics, or none is."""
        is_of_many = len(offsets) > 1
        parameters = self._parameters if self._is_tagged(next(iter(offsets))) else {**self._parameters, "tag": None}
        if is_of_many:
            places = starmap(From, offsets.items())
            asked = ask_for_many(self._connections, places, self._accept, parameters, is_repeatable=False)
        else:
            ((queue, offset),) = offsets.items()
            given = {"offset": offset, **parameters}
            asked = self._connections.ask(messages_path(*queue), given, self._accept, is_repeatable=False)
        pull = _Pull(asked, offsets, is_of_many=is_of_many)
        self._pulls.add(pull)
        self._by_queue.update(dict.fromkeys(offsets, pull))

    def _answered(self, timeout_s: float) -> list[_Pull]:
        if self._wanted:  # after the pause, the next call requests them
            timeout_s = min(timeout_s, self._not_before - time.monotonic())
        by_descriptor = {pull.asked.fileno(): pull for pull in self._pulls}
        return [by_descriptor[descriptor] for descriptor in self._bell.wait(by_descriptor, timeout_s).descriptors]

    def wake(self) -> None:
        """End a wait of `fetched`. Called from another thread."""
        self._bell.ring()

    def failed(self, error: UnavailableError) -> None:
        """Note that the service does not answer or is unavailable, and pause."""
        now = time.monotonic()
        if now < self._not_before:  # another pull that was in flight together with the first failed one
            return
        self._not_before = now + min(_FIRST_DELAY_S * 2**self._failures, _GREATEST_DELAY_S)
        self._failures += 1
        self.unreachable = (now if self.unreachable is None else self.unreachable[0]), error

    def close(self) -> None:
        """Close all pulls and connections."""
        self.keep_only(frozenset())
        self._connections.close()
        self._bell.close()
