"""Stores: all stores of a consumer, usually one. What arrives is taken from them in turn.

A store that does not answer, or lacks a topic, does not stop the others: its error reaches the program once the others
have nothing to hand out.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tidemark.client.consumer.handout import Handout
from tidemark.client.consumer.queue_cursor import IsWanted
from tidemark.client.consumer.store_reading import StoreReading
from tidemark.client.received_message import StoreQueue, TopicQueue
from tidemark.errors import TopicNotFoundError, UnavailableError

if TYPE_CHECKING:
    from tidemark.client.rest.arrow_page import TablePage

_GLANCE_S = 0.2  # longest wait before the assignments are checked
_UNANSWERED_GLANCE_S = 0.05  # while a store does not answer: its pulls are repeated after pauses of this length or more
_FAULT_PAUSE_S = 2.0  # before a store that could not be started is tried again; longer than MISSING_PAUSE_S


class _Fault(NamedTuple):
    """The last error of a store, and the time (time.monotonic()) until which it is not started again."""

    error: UnavailableError | TopicNotFoundError
    retry_at: float

    @property
    def is_recent(self) -> bool:
        """True before `retry_at`."""
        return time.monotonic() < self.retry_at


class Stores:
    """The stores of one consumer. topics: those that the program subscribed to without a group, which must exist."""

    def __init__(self, stores: Sequence[StoreReading], topics: Collection[str] = ()) -> None:
        self._stores = list(stores)
        self._topics = topics
        self._turns = deque(self._stores)  # in the order in which `take` visits them
        self._faults: dict[str, _Fault] = {}

    def __iter__(self) -> Iterator[StoreReading]:
        return iter(self._stores)

    @property
    def is_one(self) -> bool:
        """True if there is only one store."""
        return len(self._stores) == 1

    @property
    def queues(self) -> frozenset[TopicQueue]:
        """The queues that are read now."""
        return frozenset().union(*(store.queues for store in self._stores))

    def of(self, queue: tuple[str, int]) -> StoreReading:
        """Return the store of *queue*. Raises KeyError for a queue of another store, or if its store is not named."""
        if self.is_one and not isinstance(queue, StoreQueue):
            return self._stores[0]
        if not isinstance(queue, StoreQueue):
            raise KeyError(
                f"queue {queue[1]} of {queue[0]} is in several stores: name one, as message.queue does, or by "
                "StoreQueue(topic, queue_id, url)"
            )
        for store in self._stores:
            if store.has(queue):
                return store
        known = ", ".join(store.store for store in self._stores) or "one without a name"
        raise KeyError(f"{queue.store} is not a store of this consumer ({known})")

    # ── polling ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def follow(self) -> None:
        """Follow the assignment of queues in each store. Raises the error of the first one if all fail."""
        for store in self._stores:
            fault = self._faults.get(store.store)
            has_started = store.buffer.has_started
            if fault is not None and fault.is_recent and not has_started:
                continue
            is_missing = fault is not None and isinstance(fault.error, TopicNotFoundError) and fault.is_recent
            if not is_missing:  # a started store reports missing topics once a second
                self._faults.pop(store.store, None)
            self._attempt(store, store.follow)
        if len(self._faults) == len(self._stores):
            raise self._faults[self._stores[0].store].error

    def _attempt(self, store: StoreReading, call: Callable[[], object]) -> bool:
        """Call, and keep the error of a store that is not the only one. Return True if there was something to do."""
        if self.is_one:
            return bool(call())
        try:
            return bool(call())
        except (UnavailableError, TopicNotFoundError) as error:
            self._faults[store.store] = _Fault(error, time.monotonic() + _FAULT_PAUSE_S)
            return False

    def require_answers(self) -> None:
        """Raise the error that the program gets if nothing has arrived.

        UnavailableError of a store; TopicNotFoundError if none of the topics exists any more in any store, or if a
        topic was never in any of several.
        """
        for fault in self._faults.values():
            if isinstance(fault.error, UnavailableError) or len(self._faults) == len(self._stores):
                raise fault.error
        if self.is_one or len(self._started) < len(self._stores):
            return
        found = {queue.topic for queue in self.queues}
        for topic in self._topics:
            if topic not in found:
                raise TopicNotFoundError(f"topic {topic} is in none of the {len(self._stores)} stores", topic=topic)

    @property
    def _started(self) -> list[StoreReading]:
        return [store for store in self._stores if store.buffer.has_started]

    def pull(self, accept: str) -> None:
        """Start pulls for every queue with too few buffered pages."""
        for store in self._started:
            store.buffer.pull(accept)

    def take(self, most: int, is_wanted: IsWanted | None) -> Handout:
        """Take at most *most* messages. Raises an exception of *is_wanted* only if no message was taken."""
        if self.is_one:
            return self._stores[0].buffer.take(most, is_wanted)
        handout = Handout()
        failures: list[Exception] = []
        try:
            for store in self._turns:
                try:
                    handout.add(store.buffer.take(most - len(handout.messages), is_wanted))
                except Exception as error:  # of this store's messages only
                    failures.append(error)
        except BaseException:
            handout.give_back()
            raise
        self._turns.rotate(-1)  # another one is first next time
        if failures and not handout.messages:
            handout.settle()  # move past unwanted messages
            raise failures[0]
        return handout

    def fetch(self, timeout_s: float) -> None:
        """Buffer what arrives within *timeout_s*; return early if something has arrived."""
        self._wait(timeout_s, lambda store, left_s: store.fetch(left_s))

    def take_tables(self, pages: list[TablePage], handout: Handout, timeout_s: float) -> None:
        """Add the tables that arrive within *timeout_s* to *pages*, and lend them by *handout*."""
        self._wait(timeout_s, lambda store, left_s: store.take_tables(pages, handout, left_s))

    def _wait(self, timeout_s: float, receive: Callable[[StoreReading, float], bool]) -> None:
        if self.is_one:
            receive(self._stores[0], timeout_s)
            return
        if not self._receive(receive):
            self._until_readable(timeout_s)
            self._receive(receive)

    def _receive(self, receive: Callable[[StoreReading, float], bool]) -> bool:
        """Receive the answers that have arrived; return True if there were any."""
        arrived = [self._attempt(store, partial(receive, store, 0.0)) for store in self._started]
        return any(arrived)

    def _until_readable(self, timeout_s: float) -> None:
        """Wait for any store."""
        started = self._started
        is_answered = all(store.buffer.is_answered for store in started)
        poll = select.poll()
        for store in started:
            for descriptor in store.buffer.descriptors:
                poll.register(descriptor, select.POLLIN)
        longest_s = _GLANCE_S if is_answered else _UNANSWERED_GLANCE_S
        poll.poll(max(0.0, min(timeout_s, longest_s)) * 1000)

    # ── other calls ─────────────────────────────────────────────────────────────────────────────────────────────────

    def wake(self) -> None:
        """End a wait. Called from another thread."""
        for store in self._stores:
            store.buffer.wake()

    def close(self, *, commit: bool) -> None:
        """Close all stores, even if one raises."""
        errors: list[Exception] = []
        for store in self._stores:
            try:
                store.close(commit=commit)
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
