"""Pulls: where a consumer's messages come from. The query service (`fetcher`), or a store's files (`file_pulls`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from tidemark.client.received_message import PulledPage, TopicQueue
from tidemark.errors import UnavailableError

if TYPE_CHECKING:
    from tidemark.client.rest.arrow_page import TablePage


class Fetched(Protocol):
    """The answer to one pull. Both methods raise the StoreError that it was refused with."""

    @property
    def queue(self) -> TopicQueue: ...

    def page(self) -> PulledPage: ...

    def table(self) -> TablePage: ...


class Pulls(Protocol):
    """Pulls under way, one a queue, each waiting for messages. One thread, but `wake`."""

    unreachable: tuple[float, UnavailableError] | None
    """Since when (time.monotonic()) the source does not answer, and what it said."""

    def want(self, queue: TopicQueue, offset: int | str) -> None:
        """See to it that the messages of *queue* from *offset* on are under way."""

    def drop(self, queue: TopicQueue) -> None:
        """Want no more of *queue*."""

    def keep_only(self, queues: frozenset[TopicQueue]) -> None:
        """Drop all others."""

    def fetched(self, timeout_s: float) -> Iterator[Fetched]:
        """What has been answered; waits for the first of it, at most *timeout_s*, or until `wake`."""

    def failed(self, error: UnavailableError) -> None:
        """The source says that it cannot now."""

    def wake(self) -> None:
        """End a wait of `fetched`, from another thread."""

    def close(self) -> None:
        """Give up on everything."""
