"""Accumulator: single sends that come close together go as one batch (docs/format.md §15).

A batch costs the writer and the wire what a single message does. So while batches are on their way, messages gather by
topic, queue and tag; a group goes when the writer has answered everything that was on its way, when it has hold_bytes,
or after hold_ms. With nothing on its way nobody waits.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial

from tidemark.client.message import Message
from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer.gathered_batch import Group, GroupKey, size_of
from tidemark.client.producer.sender import Sender
from tidemark.client.producer.topic_routes import Route
from tidemark.client.send_result import SendResult
from tidemark.errors import InFlightLimitError, RejectedError, StoreClosedError, StoreError
from tidemark.format.elements import Element
from tidemark.format.message_id import UniqueKeys


@dataclass(frozen=True)
class Accumulation:
    """Bounds of an accumulator.

    hold_ms         how long a message waits for others at most; 1 to 30,000. Never longer than half of the timeout
    hold_bytes      a group goes once it has so many; up to 2 MiB. A larger message goes alone
    total_bytes     held and unanswered; beyond them sends wait. The same:
    total_messages  RocketMQ's bound for async sends. Each is a future, and a dozen objects with it: with 32,768 of them
                    Python's garbage collector took as long as all the rest of a send
    """

    hold_ms: float = 10.0
    hold_bytes: int = 32 << 10
    total_bytes: int = 32 << 20
    total_messages: int = 1024

    def __post_init__(self) -> None:
        if not (1 <= self.hold_ms <= 30_000 and 1 <= self.hold_bytes <= 2 << 20):
            raise ValueError("hold_ms is 1 to 30,000, hold_bytes 1 to 2 MiB")
        if self.total_bytes < 1 or self.total_messages < 1:
            raise ValueError("total_bytes and total_messages are at least 1")


class Accumulator:
    """Gathers messages and hands their batches to *sender*. One thread, for what nobody else sends in time.

    timeout_s  for each send: the wait for room, the hold, and all attempts of its batch
    """

    def __init__(self, bounds: Accumulation, sender: Sender, *, timeout_s: float) -> None:
        self._bounds = bounds
        self._sender = sender
        self._timeout_s = timeout_s
        self._hold_s = min(bounds.hold_ms / 1000, timeout_s / 2)
        self._unique_keys = UniqueKeys()
        self._sending = threading.RLock()  # taken before _lock: groups of a queue are sent in the order they began
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._due = threading.Condition(self._lock)
        self._groups: dict[GroupKey, Group] = {}  # that still take messages
        self._unanswered = 0  # batches on their way
        self._messages = self._bytes = 0  # held or on their way
        self._closed = False
        self._timer: threading.Thread | None = None

    def takes(self, element: Element) -> bool:
        """Whether it is small enough to gather others."""
        return len(element.body) + len(element.properties) < self._bounds.hold_bytes

    def add(
        self, message: Message, element: Element, queue: MessageQueue | None, route: Route, *, began: float
    ) -> Future[SendResult]:
        """Send *message* with others; its own result to come.

        began  time.monotonic() at which the program called. The timeout of its batch counts from the earliest of these
        raises InFlightLimitError when no room came within the timeout, StoreClosedError
        """
        key = GroupKey(message.topic, queue, message.tag or None)
        size = size_of(element)
        with self._lock:
            self._wait_for_room(size, began + self._timeout_s)
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = Group(key, route, began, due=time.monotonic() + self._hold_s)
            future = group.add(element, message.properties, size, began)
            self._messages += 1
            self._bytes += size
            goes = not self._unanswered or group.size >= self._bounds.hold_bytes
            if not goes and len(group) == 1:
                self._watch()
        if goes:
            self._send(key)
        return future

    def release(self, topic: str) -> None:
        """Send what is held of *topic*, so that what is sent next comes behind it."""
        with self._lock:
            keys = [key for key in self._groups if key.topic == topic]
        for key in keys:
            self._send(key)

    def flush(self) -> None:
        """Send everything that is held."""
        with self._lock:
            keys = list(self._groups)
        for key in keys:
            self._send(key)

    def close(self) -> None:
        """Send everything that is held, and take no more."""
        with self._lock:
            self._closed = True
            self._room.notify_all()
            self._due.notify_all()
        self.flush()
        if self._timer is not None:
            self._timer.join()

    def held_messages(self) -> int:
        """Return the number of messages that are held and not sent yet."""
        with self._lock:
            return sum(len(group) for group in self._groups.values())

    def has_room(self, size: int) -> bool:
        """Whether `add` would not wait, as of now."""
        with self._lock:
            return self._fits(size)

    def _wait_for_room(self, size: int, deadline: float) -> None:
        if not self._fits(size) and not self._room.wait_for(
            lambda: self._closed or self._fits(size), max(0.0, deadline - time.monotonic())
        ):
            raise InFlightLimitError(
                "the writer takes messages too slowly", limit_bytes=self._bounds.total_bytes, size=size
            )
        if self._closed:
            raise StoreClosedError("this producer is closed")

    def _fits(self, size: int) -> bool:
        return not self._messages or (
            self._bytes + size <= self._bounds.total_bytes and self._messages < self._bounds.total_messages
        )

    # ── sending ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _send(self, key: GroupKey) -> None:
        with self._sending:
            with self._lock:
                group = self._groups.pop(key, None)
                if group is None:
                    return
                self._unanswered += 1
            try:
                future = self._sender.send(replace(group.outgoing(self._unique_keys), is_final=False))
            except StoreError as error:
                future = Future()
                future.set_exception(error)
            future.add_done_callback(partial(self._answered, group))

    def _answered(self, group: Group, done: Future[SendResult]) -> None:
        with self._lock:
            self._unanswered -= 1
            keys = [] if self._unanswered else list(self._groups)
        for key in keys:
            self._send(key)
        self._complete(group, done)
        with self._lock:
            self._messages -= len(group)
            self._bytes -= group.size
            if 2 * self._messages <= self._bounds.total_messages and 2 * self._bytes <= self._bounds.total_bytes:
                self._room.notify_all()  # not one by one: those who wait fill it again in a long run each

    def _complete(self, group: Group, done: Future[SendResult]) -> None:
        error = done.exception()
        if error is None:
            group.complete(done.result())
        elif isinstance(error, RejectedError) and len(group) > 1:
            self._send_singles(group)
        else:
            self._sender.delivery.fail(len(group), error)
            group.answers.set_exception(error)

    def _send_singles(self, group: Group) -> None:
        """One bad message must not fail the others: nothing of the batch was stored."""
        for future, outgoing in group.singles():
            try:
                self._sender.send(outgoing).add_done_callback(partial(_copy, future))
            except StoreError as error:
                self._sender.delivery.fail(1, error)
                future.set_exception(error)

    # ── the timer ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        """A group was begun that is not sent at once."""
        if self._timer is None:
            self._timer = threading.Thread(target=self._run_timer, name="tidemark-accumulator", daemon=True)
            self._timer.start()
        elif len(self._groups) == 1:
            self._due.notify()

    def _run_timer(self) -> None:
        while not self._closed:
            with self._lock:
                now = time.monotonic()
                due = [key for key, group in self._groups.items() if group.due <= now]
                if not due and not self._closed:
                    next_due = min((group.due for group in self._groups.values()), default=None)
                    self._due.wait(None if next_due is None else next_due - now)
            for key in due:
                self._send(key)


def _copy(future: Future[SendResult], done: Future[SendResult]) -> None:
    error = done.exception()
    if error is None:
        future.set_result(done.result())
    else:
        future.set_exception(error)
