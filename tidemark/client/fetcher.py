"""Fetcher: long pulls under way, one a queue, and whichever is answered first. One thread; no thread of its own.

The service holds a pull until something is there, so that a queue where nothing happens costs a socket and nothing
else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tidemark.client.bell import Bell
from tidemark.client.connections import Answer, Asked, Connections
from tidemark.client.query import messages_path
from tidemark.client.received import PulledPage, TopicQueue, pulled_page
from tidemark.errors import UnavailableError
from tidemark.tls.credentials import Credentials

if TYPE_CHECKING:
    from tidemark.client.table_pages import TablePage

_MOST_QUEUES = 4096
_FIRST_DELAY_S, _GREATEST_DELAY_S = 0.05, 2.0


class HttpFetched(NamedTuple):
    """One answer of the query service."""

    queue: TopicQueue
    answer: Answer

    def page(self) -> PulledPage:
        """Of a JSON answer."""
        return pulled_page(self.queue, self.answer)

    def table(self) -> TablePage:
        """Of an Arrow answer."""
        from tidemark.client.table_pages import table_page

        return table_page(self.queue, self.answer)


class _UnderWay(NamedTuple):
    offset: int | str
    asked: Asked


class Fetcher:
    """Pulls from one query service.

    accept       the form of answers
    parameters   of every pull: max_messages, max_bytes, tag, wait_ms, ...
    credentials  default, as the environment says

    A service that does not answer is asked again, each time later, up to 2 s.
    """

    def __init__(
        self,
        url: str,
        *,
        accept: str,
        parameters: Mapping[str, object],
        timeout_s: float,
        credentials: Credentials | None = None,
    ) -> None:
        self._connections = Connections(url, timeout_s=timeout_s, kept=_MOST_QUEUES, credentials=credentials)
        self._accept = accept
        self._parameters = parameters
        self._under_way: dict[TopicQueue, _UnderWay] = {}
        self._failures = 0
        self._not_before = 0.0
        self.unreachable: tuple[float, UnavailableError] | None = None
        self._bell = Bell()

    def want(self, queue: TopicQueue, offset: int | str) -> None:
        """See to it that the messages of *queue* from *offset* on are under way."""
        pull = self._under_way.get(queue)
        if pull is not None and pull.offset == offset:
            return
        self.drop(queue)
        if time.monotonic() < self._not_before:
            return
        try:
            asked = self._connections.ask(messages_path(*queue), {"offset": offset, **self._parameters}, self._accept)
        except UnavailableError as error:
            self.failed(error)
            return
        self._under_way[queue] = _UnderWay(offset, asked)

    def drop(self, queue: TopicQueue) -> None:
        """Want no more of *queue*."""
        pull = self._under_way.pop(queue, None)
        if pull is not None:
            pull.asked.close()

    def keep_only(self, queues: frozenset[TopicQueue]) -> None:
        """Drop all others."""
        for queue in self._under_way.keys() - queues:
            self.drop(queue)

    def fetched(self, timeout_s: float) -> Iterator[HttpFetched]:
        """What has been answered; waits for the first of it, at most *timeout_s*, or until `wake`."""
        for queue in self._answered(timeout_s):
            pull = self._under_way.pop(queue, None)
            if pull is None:  # dropped meanwhile
                continue
            try:
                answer = pull.asked.answer()
            except UnavailableError as error:
                self.failed(error)
                continue
            self._failures = 0
            self.unreachable = None
            yield HttpFetched(queue, answer)

    def _answered(self, timeout_s: float) -> list[TopicQueue]:
        if self._failures:
            timeout_s = min(timeout_s, self._not_before - time.monotonic())
        by_descriptor = {pull.asked.fileno(): queue for queue, pull in self._under_way.items()}
        return [by_descriptor[descriptor] for descriptor in self._bell.wait(by_descriptor, timeout_s)]

    def wake(self) -> None:
        """End a wait of `fetched`, from another thread."""
        self._bell.ring()

    def failed(self, error: UnavailableError) -> None:
        """The service does not answer, or says that it cannot now."""
        now = time.monotonic()
        if now < self._not_before:  # others that were under way fail with the first
            return
        self._not_before = now + min(_FIRST_DELAY_S * 2**self._failures, _GREATEST_DELAY_S)
        self._failures += 1
        self.unreachable = (now if self.unreachable is None else self.unreachable[0]), error

    def close(self) -> None:
        """Give up on everything."""
        self.keep_only(frozenset())
        self._connections.close()
        self._bell.close()
