"""BatchStream: many batches in flight to one writer, each with a future, across broken connections.

A batch is repeated only on this writer, with the same request id and queue, so that the writer recognises it.
Subclasses have a transport: `append_stream` gRPC, `remoting_stream` remoting frames.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial

from tidemark.client.errors.grpc_errors import error_of_status, is_definite, is_retryable, retry_delay_s
from tidemark.client.send_result import SendResult
from tidemark.client.wire.answer_reader import AnswerReader
from tidemark.client.wire.pending_batches import Pending, PendingBatches, PendingLimits, Repeat
from tidemark.errors import (
    DeadlineExceededError,
    InFlightLimitError,
    NotLeaderError,
    StoreClosedError,
    StoreError,
    WriterUnreachableError,
)
from tidemark.v1 import commit_log_pb2

BROKEN_PAUSE_S = 0.05
CONNECT_SLICE_S = 0.5
_LOOK_EVERY_S = 5.0
_UNREACHED = (DeadlineExceededError, WriterUnreachableError)
_FIRST_DELAY_S, _GREATEST_DELAY_S = 0.02, 1.0
_Outcome = Callable[[], None]  # completes one future


class BatchStream(ABC):
    """The batches of one writer at *address*.

    timeout_s  how long `close` waits for answers
    explain    returns the reason why the writer does not answer, and True if waiting cannot help; may take two seconds
    is_group   the store has several members: a batch is repeated until it is committed
    """

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float,
        limits: PendingLimits,
        explain: Callable[[], tuple[StoreError, bool]] | None = None,
        is_group: bool = False,
    ) -> None:
        self._explain = explain
        self._is_group = is_group
        self._is_refused_by_replica = False
        self.member = ""  # address of the member with the connection; "" before the first one
        self.has_connected = False  # a writer has answered at this address
        self._explain_at = 0.0  # time.monotonic() of the next check of a silent writer
        self._address = address
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._sendable = threading.Condition(self._lock)  # a batch is ready, the stream broke, or the stream is closed
        self._room = threading.Condition(self._lock)  # bytes or messages in flight decreased
        self._waiting_for_room = 0  # threads
        self._pending = PendingBatches(limits)
        self._completing = 0  # futures being completed, outside the lock
        self._closing = self._closed = False
        self._threads: list[threading.Thread] = []
        self.is_down = False  # the connection failed; it is opened again until the writer answers

    def future(self, reader: AnswerReader) -> Future[SendResult]:
        """Return a future for a batch of which *reader* may read the answer. Call it where the batch is sent."""
        return Future()

    def submit(self, pending: Pending, *, wait: bool = True) -> None:
        """Send *pending*. With *wait*, wait for room in flight.

        raises StoreClosedError if closed, InFlightLimitError if there is no room before its deadline
        """
        with self._lock:
            if wait and not self._pending.have_room(pending.size, pending.count):
                self._wait_until_there_is_room(pending)
            if self._closing:
                raise StoreClosedError("this producer is closed")
            self._pending.add(pending)
            self._added(pending)

    def _wait_until_there_is_room(self, pending: Pending) -> None:
        """Wait for room for *pending*, or the end of the stream. The caller holds the lock.

        Raises InFlightLimitError at its deadline.
        """
        if not self._wait_for_room(
            lambda: self._closing or self._pending.have_room(pending.size, pending.count),
            pending.deadline - time.monotonic(),
        ):
            limits = self._pending.limits
            raise InFlightLimitError(
                "no room in flight before the deadline: the writer is too slow",
                limit_bytes=limits.max_bytes,
                size=pending.size,
            )

    def _wait_for_room(self, is_there: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until *is_there*; return False after *timeout_s*. The caller holds the lock."""
        if is_there():
            return True
        self._waiting_for_room += 1
        try:
            return self._room.wait_for(is_there, timeout_s)
        finally:
            self._waiting_for_room -= 1

    def _notify_room(self) -> None:
        """Wake the threads that wait for room, or until everything is answered. The caller holds the lock."""
        if self._waiting_for_room:
            self._room.notify_all()

    @abstractmethod
    def _added(self, pending: Pending) -> None:
        """Begin to send *pending*. The caller holds the lock."""

    def has_room(self, size: int) -> bool:
        """Return True if `submit` of one message would not wait now."""
        with self._lock:
            return self._pending.have_room(size, 1)

    def waiting_s(self) -> float:
        """Return how long the oldest batch in flight has been waiting; 0 if none is in flight."""
        with self._lock:
            oldest = self._pending.oldest
        return 0.0 if oldest is None else time.monotonic() - oldest

    @property
    def is_idle(self) -> bool:
        """Return True if everything submitted is answered or given up, and its callbacks are done."""
        with self._lock:
            return self._is_idle()

    def _is_idle(self) -> bool:
        return not self._completing and not self._pending.unanswered

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until everything submitted is answered or given up; return False after *timeout_s*."""
        with self._lock:
            return self._wait_for_room(self._is_idle, timeout_s)

    def unanswered(self) -> list[Pending]:
        """Return the submitted and unanswered batches."""
        with self._lock:
            return list(self._pending.unanswered.values())

    def retire(self) -> bool:
        """Accept no more batches, and return True; return False, and change nothing, if batches are in flight."""
        with self._lock:
            if not self._is_idle():
                return False
            self._closing = True
            self._notify_room()
            return True

    def close(self, deadline: float | None = None) -> None:
        """Wait for answers until *deadline* (default: for the timeout), and close the stream."""
        with self._lock:
            self._closing = True
            self._notify_room()
        self.flush(self._timeout_s if deadline is None else max(0.0, deadline - time.monotonic()))
        with self._lock:
            self._closed = True
            left = self._pending.drain()
            self._sendable.notify_all()
            self._notify_room()
        for pending in left:
            pending.future.set_exception(pending.expiry())
        self._end()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    @abstractmethod
    def leave_member(self) -> None:
        """End the connection to a member of a group that no longer writes; the next one goes to the writer."""

    @abstractmethod
    def _end(self) -> None:
        """End the connection, so that the threads end."""

    # ── a writer that does not answer ───────────────────────────────────────────────────────────────────────────────

    def _look_for_a_cause(self) -> None:
        """Record why the writer does not answer. Fail all waiting batches if no writer can be at its address."""
        now = time.monotonic()
        if self._explain is None or now < self._explain_at:
            return
        self._explain_at = now + _LOOK_EVERY_S
        self._note_cause(*self._explain())

    def _note_cause(self, error: StoreError, is_final: bool) -> None:
        """Record *error* as the reason for the wait; fail all waiting batches if it is final."""
        with self._lock:
            failed = self._pending.explain(error, remove=is_final)
            self._completing += len(failed)
        self._complete([partial(pending.future.set_exception, error) for pending in failed])

    def _not_found(self, error: StoreError) -> None:
        """Handle that no writer was found, for *error*."""
        self._give_back(error)
        if isinstance(error, _UNREACHED):
            self._look_for_a_cause()
        else:
            self._note_cause(error, not isinstance(error, NotLeaderError))

    def _give_back(self, reason: StoreError) -> None:
        """Fail the batches that may go to another writer, because this one does not answer."""
        with self._lock:
            self.is_down = True
            movable = self._pending.take_movable()
            self._completing += len(movable)
        outcomes = []
        for pending in movable:
            error = WriterUnreachableError("the writer does not answer; nothing was sent")
            error.__cause__ = pending.last_error or reason
            outcomes.append(partial(pending.future.set_exception, error))
        self._complete(outcomes)

    def _broke(self, error: StoreError, *, resume: bool) -> None:
        """Prepare the batches of an ended connection for the next one, or fail them."""
        with self._lock:
            self.is_down = resume
            self._sendable.notify_all()
            given_up = self._pending.stream_broke(error)
            if not resume:
                given_up += self._pending.drain()
            self._completing += len(given_up)
        self._complete([partial(pending.future.set_exception, error) for pending in given_up])

    # ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _settle(self, results: Iterable[commit_log_pb2.AppendStreamResponse.Result]) -> None:
        outcomes: list[_Outcome] = []
        with self._lock:
            for result in results:
                outcome = self._appended(result) if result.HasField("appended") else self._refused(result)
                if outcome is not None:
                    outcomes.append(outcome)
            self._completing += len(outcomes)
            self._notify_room()
            if self._pending.has_frame:
                self._sendable.notify_all()
        self._complete(outcomes)
        self._leave_replica()

    def _leave_replica(self) -> None:
        """End the connection if a batch was refused because the other side no longer writes."""
        if self._is_refused_by_replica:
            self._is_refused_by_replica = False
            self.leave_member()

    def _complete(self, outcomes: Sequence[_Outcome]) -> None:
        """Complete futures that `_completing` counts. Without the lock, because callbacks may submit again."""
        for complete in outcomes:
            complete()
        if outcomes:
            with self._lock:
                self._completing -= len(outcomes)
                self._notify_room()

    def _appended(self, result: commit_log_pb2.AppendStreamResponse.Result) -> _Outcome | None:
        pending = self._pending.find(result.correlation_id)
        if pending is None:
            return None
        if self._is_open(result.appended) and pending.repeat is not Repeat.NEVER:
            pending.maybe_stored = True
            self._repeat_later(pending, None)
            return None
        self._pending.settle(result.correlation_id)
        return partial(_answer, pending, result.appended, self._address)

    def _is_open(self, answer: commit_log_pb2.AppendBatchResponse) -> bool:
        """Return True if a group may still lose the batch: its replicas have not confirmed it in time."""
        return self._is_group and answer.status == commit_log_pb2.PUT_STATUS_FLUSH_SLAVE_TIMEOUT

    def _refused(self, result: commit_log_pb2.AppendStreamResponse.Result) -> _Outcome | None:
        return self._refuse(result.correlation_id, error_of_status(result.error), retry_delay_s(result.error))

    def _refuse(self, correlation_id: int, error: StoreError, given_delay_s: float | None) -> _Outcome | None:
        """Handle a refusal of one batch: send it again after a delay, or fail it. The caller holds the lock."""
        pending = self._pending.find(correlation_id)
        if pending is None:
            return None
        if is_retryable(error) and not (pending.repeat is Repeat.NEVER or (pending.may_move and is_definite(error))):
            pending.last_error = error
            self._is_refused_by_replica = self._is_group and isinstance(error, NotLeaderError)
            self._repeat_later(pending, given_delay_s)
            return None
        self._pending.settle(correlation_id)
        return partial(pending.future.set_exception, error)

    def _repeat_later(self, pending: Pending, given_delay_s: float | None) -> None:
        due = time.monotonic() + (given_delay_s or min(_FIRST_DELAY_S * 2**pending.refusals, _GREATEST_DELAY_S))
        self._pending.delay(pending, due=due)
        self._watch(due)

    # ── deadlines and delays ────────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def _watch(self, event: float) -> None:
        """Ensure that `_pass_time` is called at *event*. The caller holds the lock."""

    def _pass_time(self, now: float) -> list[Pending]:
        """Fail and return the batches whose deadline has passed, and make those ready whose delay is over."""
        with self._lock:
            expired = self._pending.expire(now)
            if self._pending.wake_delayed(now) or expired:
                self._sendable.notify_all()
            self._completing += len(expired)
        self._fail_expired(expired)
        return expired

    def _fail_expired(self, expired: list[Pending]) -> None:
        self._complete([partial(pending.future.set_exception, pending.expiry()) for pending in expired])


def _answer(pending: Pending, response: commit_log_pb2.AppendBatchResponse, writer: str) -> None:
    try:
        pending.future.set_result(
            SendResult.of(pending.request, response, writer=writer, message_ids=pending.message_ids)
        )
    except ValueError as error:  # an answer that this client does not know fails one send, not the stream
        pending.future.set_exception(StoreError(f"the writer's answer is not understood: {error}"))
