"""PendingBatches: the unanswered batches of a stream, and which to send next. It uses neither gRPC nor threads.

Not thread-safe: `append_stream.AppendStream` holds its lock around every call.
"""

from __future__ import annotations

import enum
import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from tidemark.client.send_result import SendResult
from tidemark.client.wire.plain_request import AppendRequest
from tidemark.errors import DeadlineExceededError, StoreError, WriterUnreachableError

FRAME_BYTES = 1 << 20
FRAME_BATCHES = 512
_NEVER = float("inf")
_WORTH_SENDING_BYTES = 64 << 10  # for smaller frames, the overhead of a frame exceeds the cost of its batches


class Repeat(enum.Enum):
    """What to do with a batch that is refused temporarily or was on a broken stream."""

    HERE = "here"  # send it again to this writer until its deadline
    ELSEWHERE = "elsewhere"  # fail it, for another writer, if it is certainly not stored here; otherwise as HERE
    NEVER = "never"  # fail it


class PendingLimits(NamedTuple):
    """Limits of unanswered bytes and messages per writer; a larger batch is sent alone."""

    max_bytes: int
    max_messages: int


@dataclass(slots=True, eq=False)
class Pending:
    """One unanswered batch.

    request          everything except its messages
    packed           the messages as a wire batch
    size             approximate bytes of both
    deadline, given  time.monotonic() seconds
    count            the messages in flight that it counts as
    messages         the number of messages in it
    message_ids      the UNIQ_KEY of each message, for its result
    """

    request: AppendRequest
    packed: bytes
    size: int
    deadline: float
    count: int = 1
    repeat: Repeat = Repeat.HERE
    messages: int = 1
    message_ids: Sequence[str] = ()
    given: float = field(default_factory=time.monotonic)
    future: Future[SendResult] = field(default_factory=Future)
    correlation_id: int = 0
    sent: bool = False  # it is on the current stream
    maybe_stored: bool = False  # it was on a stream that broke before its answer
    refusals: int = 0
    last_error: StoreError | None = None

    @property
    def may_move(self) -> bool:
        """Return True if another writer may get it: this writer has certainly not stored it."""
        return self.repeat is Repeat.ELSEWHERE and not self.maybe_stored

    def expiry(self) -> StoreError:
        """Return the error of its expiry: unknown outcome, the last refusal, or never sent."""
        if self.sent or self.maybe_stored:
            error = DeadlineExceededError(
                "no answer in time; the batch may be stored", request_id=self.request.request_id
            )
            error.__cause__ = self.last_error
            return error
        return self.last_error or WriterUnreachableError("the writer did not answer in time; nothing was sent")


class PendingBatches:
    """All unanswered batches of one stream, in the order of their submission."""

    def __init__(self, limits: PendingLimits) -> None:
        self.limits = limits
        self.bytes_in_flight = 0
        self.messages_in_flight = 0
        self._numbers = itertools.count(1)
        self.unanswered: dict[int, Pending] = {}  # by correlation id, in order of submission; others only read it
        self._ready: deque[Pending] = deque()
        self.ready_bytes = 0  # of the batches that can be sent
        self._sent = 0  # number of batches on the current stream
        # heaps of (time, correlation id); some entries are answered already
        self._deadlines: list[tuple[float, int]] = []
        self._delayed: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self.unanswered)

    def have_room(self, size: int, count: int) -> bool:
        """Return True if a batch of *size* bytes and *count* messages is within the limits."""
        return not self.unanswered or (
            self.bytes_in_flight + size <= self.limits.max_bytes
            and self.messages_in_flight + count <= self.limits.max_messages
        )

    @property
    def has_frame(self) -> bool:
        """Return True if a frame should be sent now.

        A frame costs both sides ten times as much as a small batch in it. While batches are unanswered, as many new
        ones gather first, or enough bytes; otherwise a batch is sent at once.
        """
        return bool(self._ready) and (len(self._ready) >= self._sent or self.ready_bytes >= _WORTH_SENDING_BYTES)

    @property
    def is_ready(self) -> bool:
        """Return True if a batch can be sent."""
        return bool(self._ready)

    def add(self, pending: Pending) -> None:
        """Add a new batch; its future can no longer be cancelled."""
        pending.future.set_running_or_notify_cancel()
        self._enter(pending)
        self._ready.append(pending)
        self.ready_bytes += pending.size

    def add_sent(self, pending: Pending) -> int:
        """Add a batch that the caller sends at once, with a future that cannot be cancelled; return its number."""
        pending.sent = True
        self._sent += 1
        return self._enter(pending)

    def _enter(self, pending: Pending) -> int:
        number = pending.correlation_id = next(self._numbers)
        self.unanswered[number] = pending
        heapq.heappush(self._deadlines, (pending.deadline, number))
        self.bytes_in_flight += pending.size
        self.messages_in_flight += pending.count
        return number

    @property
    def oldest(self) -> float | None:
        """Return the submission time of the oldest unanswered batch; None if there is none."""
        for pending in self.unanswered.values():
            return pending.given
        return None

    def _make_ready(self, *batches: Pending) -> None:
        self._ready.extend(batches)
        for batch in batches:
            self.ready_bytes += batch.size

    def take_frame(self) -> list[Pending]:
        """Return the next batches to send: at least one, and about 1 MiB at most."""
        frame: list[Pending] = []
        size = 0
        while self._ready and len(frame) < FRAME_BATCHES:
            if size and size + self._ready[0].size > FRAME_BYTES:
                break
            pending = self._ready.popleft()
            pending.sent = True
            self._sent += 1
            self.ready_bytes -= pending.size
            size += pending.size
            frame.append(pending)
        return frame

    def settle(self, correlation_id: int) -> Pending | None:
        """Remove an answered batch and return it; None if it was given up before."""
        pending = self.unanswered.pop(correlation_id, None)
        if pending is not None:
            self.bytes_in_flight -= pending.size
            self.messages_in_flight -= pending.count
            self._sent -= pending.sent
        while self._deadlines and self._deadlines[0][1] not in self.unanswered:
            heapq.heappop(self._deadlines)
        return pending

    def delay(self, pending: Pending, *, due: float) -> None:
        """Send a refused batch again at *due*."""
        self._sent -= pending.sent
        pending.sent = False
        pending.refusals += 1
        heapq.heappush(self._delayed, (due, pending.correlation_id))

    def find(self, correlation_id: int) -> Pending | None:
        """Return an unanswered batch; None if there is none with this id."""
        return self.unanswered.get(correlation_id)

    def stream_broke(self, error: StoreError) -> list[Pending]:
        """Prepare unanswered batches for the next stream, in their old order; remove and return those to give up.

        Refused batches lose their delay: a writer that shuts down refuses, and the next writer must not get later
        batches first. Opening the next stream is delay enough.
        """
        for pending in self.unanswered.values():
            if pending.sent:
                pending.maybe_stored = True
                pending.sent = False
                pending.last_error = error
        self._sent = 0
        self._delayed.clear()
        return self._remove(lambda pending: pending.maybe_stored and pending.repeat is Repeat.NEVER)

    def explain(self, error: StoreError, *, remove: bool) -> list[Pending]:
        """Set *error* as the last error of batches that were never sent; with *remove*, remove and return them."""
        waiting = [pending for pending in self.unanswered.values() if not pending.sent and not pending.maybe_stored]
        for pending in waiting:
            pending.last_error = error
        return self._remove(lambda pending: not pending.sent and not pending.maybe_stored) if remove else []

    def take_movable(self) -> list[Pending]:
        """Remove and return the batches that another writer may get. Called while there is no stream."""
        return self._remove(lambda pending: pending.may_move)

    def _remove(self, is_wanted: Callable[[Pending], bool]) -> list[Pending]:
        removed = [pending for pending in self.unanswered.values() if is_wanted(pending)]
        for pending in removed:
            self.settle(pending.correlation_id)
        self._forget_ready()
        delayed = {number for _, number in self._delayed}
        self._make_ready(*(pending for number, pending in self.unanswered.items() if number not in delayed))
        return removed

    def wake_delayed(self, now: float) -> bool:
        """Make the batches that are due at *now* ready; return True if there were any."""
        woken = False
        while self._delayed and self._delayed[0][0] <= now:
            pending = self.unanswered.get(heapq.heappop(self._delayed)[1])
            if pending is not None:
                self._make_ready(pending)
                woken = True
        return woken

    def expire(self, now: float) -> list[Pending]:
        """Remove and return the batches whose deadline has passed."""
        expired = []
        while self._deadlines and self._deadlines[0][0] <= now:
            pending = self.settle(self._deadlines[0][1])
            assert pending is not None  # settle removes answered batches from the top of the heap
            expired.append(pending)
        if expired:
            left = [pending for pending in self._ready if pending.correlation_id in self.unanswered]
            self._forget_ready()
            self._make_ready(*left)
        return expired

    @property
    def first_deadline(self) -> float | None:
        """Return the earliest deadline of the unanswered batches; None if there is none."""
        return self._deadlines[0][0] if self._deadlines else None

    def next_event(self) -> float:
        """Return the time of the next deadline or end of a delay; infinity if there is neither."""
        deadline = self._deadlines[0][0] if self._deadlines else _NEVER
        return min(deadline, self._delayed[0][0]) if self._delayed else deadline

    def drain(self) -> list[Pending]:
        """Remove and return all batches."""
        everything = list(self.unanswered.values())
        for pending in everything:
            self.settle(pending.correlation_id)
        self._forget_ready()
        self._delayed.clear()
        return everything

    def _forget_ready(self) -> None:
        self._ready.clear()
        self.ready_bytes = 0
