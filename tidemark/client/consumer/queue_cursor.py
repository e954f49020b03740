"""Cursor: a consumer's position in one queue, and its fetched messages that are not handed out yet."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tidemark.client.received_message import ReceivedMessage, TopicQueue, queue_of_store

IsWanted = Callable[[ReceivedMessage], bool]
_MOST_HELD = 100  # limit of messages in a queue on which the program's function raises; beyond it, the queue waits


class _Page(NamedTuple):
    messages: deque[ReceivedMessage]
    next_offset: int


class CursorState(NamedTuple):
    """The part of a cursor that a poll changes."""

    generation: int
    delivered: int | str
    held: dict[int, ReceivedMessage]


class Cursor:
    """One queue of a consumer.

    named       the queue as the program names it: with its store if the consumer reads several
    fetch_at    the next queue offset to fetch: the end of the buffered pages
    committed   the group's committed offset, as far as this consumer knows; None if there is none
    earliest    the offset that a seek to "earliest" found; retention may delete more before the first fetch
    retry_at    time.monotonic() before which nothing is fetched; 0.0 for no pause
    generation  rises when lent and buffered messages become invalid
    has_raised  set by the caller: the program got its function's exception for the first buffered message

    `take` lends messages: positions move only when `settle` confirms that the program received them, and `rewind`
    takes them back. The consumer's thread owns a cursor. `settle` and `rewind` may also run in an event loop's thread;
    the lock orders them with `seek`.
    """

    def __init__(
        self, queue: TopicQueue, position: int | str, *, committed: int | None = None, store: str = ""
    ) -> None:
        self.queue = queue
        self.named = queue_of_store(queue, store)
        self.committed = committed
        self.earliest: int | None = None
        self.retry_at = 0.0
        self.is_paused = False
        self.generation = 0
        self.has_raised = False
        self._delivered = position  # the program received every wanted message below it, except the held ones
        self._next = position  # the next queue offset to take
        self._is_lent = False
        self._pages: deque[_Page] = deque()
        self._held: dict[int, ReceivedMessage] = {}  # by queue offset: the program's function raised on them twice
        self._lock = threading.Lock()

    @property
    def position(self) -> int | str:
        """Return the lowest queue offset that the program has not received; "earliest" until an answer resolves it."""
        return min(self._held) if self._held else self._delivered

    @property
    def state(self) -> CursorState:
        """Return the state to which `rewind` can return."""
        return CursorState(self.generation, self._delivered, dict(self._held))

    @property
    def is_empty(self) -> bool:
        """Return True if there is nothing to take."""
        return not self._pages and not self._held

    @property
    def pages(self) -> int:
        """Return the number of buffered pages."""
        return len(self._pages)

    @property
    def fetch_at(self) -> int | str:
        """Return the next queue offset to fetch."""
        return self._pages[-1].next_offset if self._pages else self._next

    def seek(self, position: int | str) -> None:
        """Continue at *position*. Drop buffered messages and messages that the program has not received."""
        with self._lock:
            self._return_to(CursorState(self.generation + 1, position, {}))

    def restart(self) -> None:
        """Drop the buffered messages, and fetch them again."""
        with self._lock:
            self._return_to(CursorState(self.generation + 1, self._delivered, self._held))

    def release_held(self, *, below: int) -> None:
        """Forget the held messages below an offset that the program has committed."""
        self._held = {offset: message for offset, message in self._held.items() if offset >= below}

    def add(self, messages: list[ReceivedMessage], *, requested_offset: int, next_offset: int) -> None:
        """Buffer the page from *requested_offset* to *next_offset*; the service may have filtered some messages out.

        A page that does not begin at `fetch_at` answers a request from before a seek, and is ignored.
        """
        if self.fetch_at not in (requested_offset, "earliest"):
            return
        if isinstance(self._delivered, str):
            self._delivered = self._next = requested_offset
        self._pages.append(_Page(deque(messages), next_offset))
        self._step_over()
        if not self._is_lent:
            self._delivered = self._next

    def take(self, most: int, is_wanted: IsWanted | None, into: list[ReceivedMessage]) -> None:
        """Append at most *most* wanted messages to *into*, in order. is_wanted: None if all messages are.

        If *is_wanted* raises, take the messages before that one; if there are none, raise the exception. If it raises
        on the same message again, hold the message and take those after it. Each later call tries the held messages
        again, and `position` stays at the first of them.
        """
        self._is_lent = True
        if is_wanted is None:
            self._take_all(most, into)
        else:
            self._take_wanted(most, is_wanted, into)

    def _take_all(self, most: int, into: list[ReceivedMessage]) -> None:
        while self._pages and most > 0:
            messages = self._pages[0].messages
            taken = list(messages) if len(messages) <= most else list(itertools.islice(messages, most))
            into += taken
            most -= len(taken)
            if len(taken) == len(messages):
                messages.clear()
            else:
                self._next = taken[-1].queue_offset + 1
                for _ in taken:
                    messages.popleft()
            self._step_over()

    def _take_wanted(self, most: int, is_wanted: IsWanted, into: list[ReceivedMessage]) -> None:
        generation = self.generation
        begin, limit = len(into), len(into) + most
        error = self._take_held(limit, is_wanted, into)
        may_hold, self.has_raised = self.has_raised, False
        while self._pages and len(into) < limit and self.generation == generation:
            message = self._pages[0].messages[0]
            try:
                wanted = is_wanted(message)
            except Exception as raised:
                error = error or raised
                if not may_hold or len(self._held) >= _MOST_HELD:
                    break
                self._held[message.queue_offset] = message
                wanted = False
            if self.generation != generation:  # the function called seek, so its message is not the next one any more
                return
            self._pass(message, into if wanted else None)
        if error is not None and len(into) == begin:
            raise error

    def _take_held(self, limit: int, is_wanted: IsWanted, into: list[ReceivedMessage]) -> Exception | None:
        """Try the held messages again; return the first exception."""
        error: Exception | None = None
        generation = self.generation
        for offset, message in list(self._held.items()):
            if len(into) >= limit:
                break
            try:
                wanted = is_wanted(message)
            except Exception as raised:
                error = error or raised
                continue
            if self.generation != generation:
                break
            if wanted:
                into.append(message)
            del self._held[offset]
        return error

    def _pass(self, message: ReceivedMessage, into: list[ReceivedMessage] | None) -> None:
        if into is not None:
            into.append(message)
        self._next = message.queue_offset + 1
        self._pages[0].messages.popleft()
        self._step_over()

    def pass_to(self, offset: int) -> None:
        """Lend everything below *offset*, which is in a table."""
        self._is_lent = True
        self._next = offset

    def settle(self, generation: int) -> bool:
        """Confirm that the program received the lent messages; return False if a seek or a loss invalidated them."""
        with self._lock:
            if generation != self.generation:
                return False
            self._is_lent = False
            self._delivered = self._next
            return True

    def rewind(self, state: CursorState) -> None:
        """Take the lent messages back and fetch them again, unless a seek or a loss invalidated them."""
        with self._lock:
            if state.generation == self.generation:
                self._return_to(state)

    def _return_to(self, state: CursorState) -> None:
        pages: deque[_Page] = deque()
        # plain stores without a call between them: a KeyboardInterrupt comes before or after all of them
        self._pages = pages
        self._next = state.delivered
        self._delivered = state.delivered
        self._held = state.held
        self.generation = state.generation
        self.has_raised = False
        self._is_lent = False

    def _step_over(self) -> None:
        """Move past the ends of exhausted pages."""
        while self._pages and not self._pages[0].messages:
            self._next = self._pages[0].next_offset
            self._pages.popleft()


Cursors = Mapping[TopicQueue, Cursor]
