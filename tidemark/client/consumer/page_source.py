"""Pulls: the source of a consumer's messages: the query service (`long_poller`) or files (`file_page_source`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from tidemark.client.received_message import PulledPage, TopicQueue
from tidemark.errors import UnavailableError

if TYPE_CHECKING:
    from tidemark.client.rest.arrow_page import TablePage


class Fetched(Protocol):
    """The answer to one pull. Both methods raise the StoreError with which it was refused."""

    @property
    def queue(self) -> TopicQueue: ...

    def page(self) -> PulledPage: ...

    def table(self) -> TablePage: ...


class Pulls(Protocol):
    """Concurrent pulls, at most one per queue, each waiting for messages. One thread, except `wake`."""

    is_patient: bool
    """True if the source is known to be right, so that its first answer may be late."""

    unreachable: tuple[float, UnavailableError] | None
    """Time (time.monotonic()) since which the source has not answered, and its last error; None if it answers."""

    @property
    def descriptors(self) -> list[int]:
        """The file descriptors of which one becomes readable when a wait of `fetched` would end."""

    def want(self, queue: TopicQueue, offset: int | str) -> None:
        """Request the messages of *queue* from *offset* on."""

    def drop(self, queue: TopicQueue) -> None:
        """Stop requesting messages of *queue*."""

    def keep_only(self, queues: frozenset[TopicQueue]) -> None:
        """Drop all queues that are not in *queues*."""

    def fetched(self, timeout_s: float) -> Iterator[Fetched]:
        """Yield the answers that have arrived; wait for the first one until *timeout_s* or `wake`."""

    def failed(self, error: UnavailableError) -> None:
        """Note that the source is unavailable."""

    def wake(self) -> None:
        """End a wait of `fetched`. Called from another thread."""

    def close(self) -> None:
        """Close all pulls."""
