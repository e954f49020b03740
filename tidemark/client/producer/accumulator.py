"""Accumulator: combines single sends into batches (docs/format.md §15).

A batch costs the writer and the network as much as a single message. While batches are unanswered, messages gather by
topic, queue and tag. A group is sent when the writer has answered all earlier batches, when it has hold_bytes, or after
hold_ms. If nothing is unanswered, a message is sent at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from tidemark.client.message import Message
from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer.gathered_batch import KEYED_OVERHEAD, GatheredMessages, GroupKey
from tidemark.client.producer.sender import Sender
from tidemark.client.producer.topic_routes import Route
from tidemark.client.send_result import SendResult
from tidemark.errors import InFlightLimitError, RejectedError, StoreClosedError, StoreError
from tidemark.format.elements import Element, Parts
from tidemark.format.message_id import UniqueKeys


@dataclass(frozen=True)
class Accumulation:
    """Bounds of an accumulator.

    hold_ms         longest time that a message waits for others; 1 to 30,000. At most half of the timeout is used
    hold_bytes      size at which a group is sent; up to 2 MiB. A larger message is sent alone
    total_bytes     limit of held and unanswered bytes; further sends wait
    total_messages  limit of held and unanswered messages; further sends wait, as RocketMQ's async sends do
    """

    hold_ms: float = 10.0
    hold_bytes: int = 128 << 10
    total_bytes: int = 32 << 20
    total_messages: int = 1024

    def __post_init__(self) -> None:
        if not (1 <= self.hold_ms <= 30_000 and 1 <= self.hold_bytes <= 2 << 20):
            raise ValueError(
                f"hold_ms is {self.hold_ms} and hold_bytes is {self.hold_bytes}; hold_ms must be 1 to 30,000, "
                "hold_bytes 1 to 2 MiB"
            )
        if self.total_bytes < 1 or self.total_messages < 1:
            raise ValueError(
                f"total_bytes is {self.total_bytes} and total_messages is {self.total_messages}; each must be 1 or more"
            )


Key = tuple[str, MessageQueue | None, str | None]  # equal to a GroupKey, and faster to make


class Accumulator:
    """Gathers messages and hands their batches to *sender*. Its thread sends the groups that are due.

    timeout_s  limit for each send: the wait for room, the hold, and all attempts of its batch
    """

    def __init__(self, bounds: Accumulation, sender: Sender, *, timeout_s: float) -> None:
        self._bounds = bounds
        self.hold_bytes = bounds.hold_bytes
        self._sender = sender
        self._timeout_s = timeout_s
        self._hold_s = min(bounds.hold_ms / 1000, timeout_s / 2)
        self._unique_keys = UniqueKeys()
        self._sending = threading.RLock()  # taken before _lock: groups of a queue are sent in the order they started
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._due = threading.Condition(self._lock)
        self._groups: dict[Key, GatheredMessages] = {}  # groups that still accept messages
        self._unanswered = 0  # batches in flight
        self._messages = self._bytes = 0  # held or in flight
        self._closed = False
        self._timer: threading.Thread | None = None

    def takes(self, element: Element) -> bool:
        """Return True if the element is small enough for a group."""
        return len(element.body) + len(element.properties) < self.hold_bytes

    def add(
        self, message: Message, element: Element, queue: MessageQueue | None, route: Route, *, began: float
    ) -> Future[SendResult]:
        """Send *message* in a group, and return the future of its own result.

        began  time.monotonic() of the program's call. The timeout of a batch counts from its earliest message
        raises InFlightLimitError if there is no room within the timeout, StoreClosedError
        """
        key = (message.topic, queue, message.tag or None)
        return self.add_element(key, element, message.properties, route, began)

    def add_element(
        self, key: Key, element: Parts, properties: Mapping[str, str] | None, route: Route, began: float
    ) -> Future[SendResult]:
        """Send the message of *element* in the group of *key*, as `add` does. properties: its further ones, if any."""
        size = KEYED_OVERHEAD + len(element[0]) + len(element[1])
        with self._lock:
            if self._closed or not self._fits(size):
                self._wait_for_room(size, began + self._timeout_s)
            group = self._groups.get(key)
            is_first = group is None
            if group is None:
                group = GatheredMessages(GroupKey(*key), route, began, due=time.monotonic() + self._hold_s)
                self._groups[group.key] = group
            future = group.add(element, properties, size, began)
            self._messages += 1
            self._bytes += size
            is_due = not self._unanswered or group.size >= self.hold_bytes
            if is_first and not is_due:
                self._watch()
        if is_due:
            self._send(group.key)
        return future

    def release(self, topic: str) -> None:
        """Send the held messages of *topic*, so that a later send is stored after them."""
        with self._lock:
            keys = [key for key, group in self._groups.items() if group.key.topic == topic]
        for key in keys:
            self._send(key)

    def flush(self) -> None:
        """Send all held messages."""
        with self._lock:
            keys = list(self._groups)
        for key in keys:
            self._send(key)

    def close(self) -> None:
        """Send all held messages, and accept no more."""
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
        """Return True if `add` would not wait now."""
        with self._lock:
            return self._fits(size)

    def _wait_for_room(self, size: int, deadline: float) -> None:
        if not self._room.wait_for(lambda: self._closed or self._fits(size), max(0.0, deadline - time.monotonic())):
            raise InFlightLimitError(
                "no room in flight within the timeout: the writer is too slow",
                limit_bytes=self._bounds.total_bytes,
                size=size,
            )
        if self._closed:
            raise StoreClosedError("this producer is closed")

    def _fits(self, size: int) -> bool:
        return not self._messages or (
            self._bytes + size <= self._bounds.total_bytes and self._messages < self._bounds.total_messages
        )

    # ── sending ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _send(self, key: Key) -> None:
        with self._sending:
            with self._lock:
                group = self._groups.pop(key, None)
                if group is None:
                    return
                self._unanswered += 1
            try:
                future = self._sender.send(group.outgoing(self._unique_keys))
            except StoreError as error:
                future = Future()
                future.set_exception(error)
            future.add_done_callback(partial(self._answered, group))

    def _answered(self, group: GatheredMessages, done: Future[SendResult]) -> None:
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
                self._room.notify_all()  # late and together: each woken sender then adds many messages in a row

    def _complete(self, group: GatheredMessages, done: Future[SendResult]) -> None:
        error = done.exception()
        if error is None:
            group.complete(done.result())
        elif isinstance(error, RejectedError) and len(group) > 1:
            self._send_singles(group)
        else:
            self._sender.delivery.fail(len(group), error)
            group.answers.set_exception(error)

    def _send_singles(self, group: GatheredMessages) -> None:
        """Send each message alone, so that one bad message does not fail the others. None of the batch was stored."""
        for future, outgoing in group.singles():
            try:
                self._sender.send(outgoing).add_done_callback(partial(_copy, future))
            except StoreError as error:
                self._sender.delivery.fail(1, error)
                future.set_exception(error)

    # ── the timer ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        """Wake the timer for a new group that is not sent at once."""
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
