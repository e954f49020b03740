"""Batches on their way: which are unanswered, which to send now or later, how many bytes they are. No gRPC, no threads.

Not safe by itself: `append_stream.AppendStream` holds its lock around every call.
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
from tidemark.errors import DeadlineExceededError, StoreError, WriterUnreachableError
from tidemark.v1 import commit_log_pb2

FRAME_BYTES = 1 << 20
FRAME_BATCHES = 512
_WORTH_SENDING_BYTES = 64 << 10  # few of so many bytes cost more than their frame


class Repeat(enum.Enum):
    """What becomes of a batch that is refused for now, or that a broken stream carried."""

    HERE = "here"  # sent again to this writer until its deadline
    ELSEWHERE = "elsewhere"  # given back as soon as it surely is not stored here; else as HERE
    NEVER = "never"  # given up


class Limits(NamedTuple):
    """Of what is in flight to one writer; a larger batch goes alone."""

    max_bytes: int
    max_messages: int


@dataclass(slots=True, eq=False)
class Pending:
    """One batch without an answer yet.

    request          all of it but its messages
    packed           these, a wire batch; size: bytes of both, about
    deadline, given  time.monotonic() seconds
    count            of messages in flight that it counts as
    messages         the number of messages in it
    message_ids      the UNIQ_KEY of each message, for its result
    """

    request: commit_log_pb2.AppendBatchRequest
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
    sent: bool = False  # on the stream of now
    maybe_stored: bool = False  # was on a stream that broke before it was answered
    refusals: int = 0
    last_error: StoreError | None = None

    @property
    def may_move(self) -> bool:
        """Whether another writer may get it now: a refusal of this one was definite."""
        return self.repeat is Repeat.ELSEWHERE and not self.maybe_stored

    def expiry(self) -> StoreError:
        """Why it is given up: unknown outcome, the last refusal, or never sent."""
        if self.sent or self.maybe_stored:
            error = DeadlineExceededError(
                "no answer in time; the batch may be stored", request_id=self.request.request_id
            )
            error.__cause__ = self.last_error
            return error
        return self.last_error or WriterUnreachableError("the writer did not answer in time; nothing was sent")


class PendingBatches:
    """All unanswered batches of one stream, in the order they were given."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.bytes_in_flight = 0
        self.messages_in_flight = 0
        self._numbers = itertools.count(1)
        self._unanswered: dict[int, Pending] = {}  # by correlation id, which grows: in the order they came
        self._ready: deque[Pending] = deque()
        self._ready_bytes = 0
        self._sent = 0  # on the stream of now
        self._deadlines: list[tuple[float, int]] = []  # heaps of (when, correlation id); some are answered already
        self._delayed: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._unanswered)

    @property
    def messages(self) -> int:
        """The number of messages in all unanswered batches."""
        return sum(pending.messages for pending in self._unanswered.values())

    def have_room(self, size: int, count: int) -> bool:
        """Whether a batch of *size* bytes and *count* messages is within the limits."""
        return not self._unanswered or (
            self.bytes_in_flight + size <= self.limits.max_bytes
            and self.messages_in_flight + count <= self.limits.max_messages
        )

    @property
    def has_frame(self) -> bool:
        """Whether a frame is to be sent now.

        Each costs both sides ten times what a small batch in it does. So while some are on their way, as many gather
        first, or enough bytes; with nothing on its way nobody waits.
        """
        return bool(self._ready) and (len(self._ready) >= self._sent or self._ready_bytes >= _WORTH_SENDING_BYTES)

    def add(self, pending: Pending) -> None:
        """Take a new batch; its future can no longer be cancelled."""
        pending.correlation_id = next(self._numbers)
        pending.future.set_running_or_notify_cancel()
        self._unanswered[pending.correlation_id] = pending
        self._make_ready(pending)
        heapq.heappush(self._deadlines, (pending.deadline, pending.correlation_id))
        self.bytes_in_flight += pending.size
        self.messages_in_flight += pending.count

    @property
    def oldest(self) -> float | None:
        """When the batch that waits longest for its answer was given; None where none does."""
        for pending in self._unanswered.values():
            return pending.given
        return None

    def _make_ready(self, *pending: Pending) -> None:
        self._ready.extend(pending)
        self._ready_bytes += sum(batch.size for batch in pending)

    def take_frame(self) -> list[Pending]:
        """The next batches to send, about a MiB of them; at least one."""
        frame: list[Pending] = []
        size = 0
        while self._ready and len(frame) < FRAME_BATCHES:
            if size and size + self._ready[0].size > FRAME_BYTES:
                break
            pending = self._ready.popleft()
            pending.sent = True
            self._sent += 1
            self._ready_bytes -= pending.size
            size += pending.size
            frame.append(pending)
        return frame

    def settle(self, correlation_id: int) -> Pending | None:
        """Remove a batch that is answered; None when it was given up before."""
        pending = self._unanswered.pop(correlation_id, None)
        if pending is not None:
            self.bytes_in_flight -= pending.size
            self.messages_in_flight -= pending.count
            self._sent -= pending.sent
        while self._deadlines and self._deadlines[0][1] not in self._unanswered:
            heapq.heappop(self._deadlines)
        return pending

    def delay(self, pending: Pending, *, due: float) -> None:
        """Send a refused batch again at *due*."""
        self._sent -= pending.sent
        pending.sent = False
        pending.refusals += 1
        heapq.heappush(self._delayed, (due, pending.correlation_id))

    def find(self, correlation_id: int) -> Pending | None:
        """An unanswered batch."""
        return self._unanswered.get(correlation_id)

    def stream_broke(self, error: StoreError) -> list[Pending]:
        """Everything unanswered is to be sent on the next stream, in its old order; what is not is removed and given.

        Also what was refused and waits: a writer that shuts down refuses, and the next one must not get later sends
        before. Finding another stream is delay enough.
        """
        for pending in self._unanswered.values():
            if pending.sent:
                pending.maybe_stored = True
                pending.sent = False
                pending.last_error = error
        self._sent = 0
        self._delayed.clear()
        return self._remove(lambda pending: pending.maybe_stored and pending.repeat is Repeat.NEVER)

    def explain(self, error: StoreError, *, remove: bool) -> list[Pending]:
        """Note *error* as the reason why batches that were never sent wait; with *remove*, remove and return them."""
        waiting = [pending for pending in self._unanswered.values() if not pending.sent and not pending.maybe_stored]
        for pending in waiting:
            pending.last_error = error
        return self._remove(lambda pending: not pending.sent and not pending.maybe_stored) if remove else []

    def take_movable(self) -> list[Pending]:
        """Remove and give what another writer may get; while no stream carries anything."""
        return self._remove(lambda pending: pending.may_move)

    def _remove(self, is_wanted: Callable[[Pending], bool]) -> list[Pending]:
        removed = [pending for pending in self._unanswered.values() if is_wanted(pending)]
        for pending in removed:
            self.settle(pending.correlation_id)
        self._forget_ready()
        delayed = {number for _, number in self._delayed}
        self._make_ready(*(pending for number, pending in self._unanswered.items() if number not in delayed))
        return removed

    def wake_delayed(self, now: float) -> bool:
        """Make ready what is due at *now*; whether there was any."""
        woken = False
        while self._delayed and self._delayed[0][0] <= now:
            pending = self._unanswered.get(heapq.heappop(self._delayed)[1])
            if pending is not None:
                self._make_ready(pending)
                woken = True
        return woken

    def expire(self, now: float) -> list[Pending]:
        """Remove and give the batches whose deadline has passed."""
        expired = []
        while self._deadlines and self._deadlines[0][0] <= now:
            pending = self.settle(self._deadlines[0][1])
            assert pending is not None  # settle leaves an unanswered one on top
            expired.append(pending)
        if expired:
            left = [pending for pending in self._ready if pending.correlation_id in self._unanswered]
            self._forget_ready()
            self._make_ready(*left)
        return expired

    def next_event(self) -> float:
        """When the next deadline passes or delay ends; infinity when there is neither."""
        return min((heap[0][0] for heap in (self._deadlines, self._delayed) if heap), default=float("inf"))

    def drain(self) -> list[Pending]:
        """Remove and give everything."""
        everything = list(self._unanswered.values())
        for pending in everything:
            self.settle(pending.correlation_id)
        self._forget_ready()
        self._delayed.clear()
        return everything

    def _forget_ready(self) -> None:
        self._ready.clear()
        self._ready_bytes = 0
