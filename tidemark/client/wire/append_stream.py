"""WriterStream: many batches in flight on one gRPC stream, each with a future, across broken connections.

It has two threads: one opens the stream and reads answers, the other watches deadlines and delays. gRPC takes frames in
a third. A batch is repeated only on this writer, with the same request id and queue, so that the writer recognises it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import grpc

from tidemark.client.errors.grpc_errors import (
    error_of_rpc,
    error_of_status,
    is_answer,
    is_definite,
    is_retryable,
    may_resume,
    retry_delay_s,
)
from tidemark.client.send_result import SendResult
from tidemark.client.wire.append_frame import encode_frame
from tidemark.client.wire.pending_batches import Pending, PendingBatches, PendingLimits, Repeat
from tidemark.errors import InFlightLimitError, StoreClosedError, StoreError, WriterUnreachableError
from tidemark.v1 import commit_log_pb2
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub

_CONNECT_SLICE_S = 0.5
_BROKEN_PAUSE_S = 0.05
_LOOK_EVERY_S = 5.0
_FIRST_DELAY_S, _GREATEST_DELAY_S = 0.02, 1.0
_APPEND_STREAM = f"/{commit_log_pb2.DESCRIPTOR.services_by_name['CommitLogService'].full_name}/AppendStream"
_Outcome = Callable[[], None]  # completes one future


class WriterStream:
    """One stream to the writer at *address*.

    timeout_s  how long `close` waits for answers
    explain    returns the reason why the writer does not answer, and True if waiting cannot help; may take two seconds
    """

    def __init__(
        self,
        channel: grpc.Channel,
        address: str,
        *,
        timeout_s: float,
        limits: PendingLimits,
        explain: Callable[[], tuple[StoreError, bool]] | None = None,
    ) -> None:
        self._explain = explain
        self.has_connected = False  # a writer has answered at this address
        self._explain_at = 0.0  # time.monotonic() of the next check of a silent writer
        self._stub = CommitLogServiceStub(channel)
        # like the stub's method, but for requests that are already bytes
        self._append: grpc.StreamStreamMultiCallable[bytes, Any] = channel.stream_stream(
            _APPEND_STREAM, response_deserializer=commit_log_pb2.AppendStreamResponse.FromString
        )
        self._address = address
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._sendable = threading.Condition(self._lock)  # a batch is ready, the stream broke, or the stream is closed
        self._room = threading.Condition(self._lock)  # bytes or messages in flight decreased
        self._timers = threading.Condition(self._lock)  # an event is earlier than the watcher's wait
        self._pending = PendingBatches(limits)
        self._watch_until = float("inf")
        self._stream_number = 0
        self._call: grpc.Call | None = None
        self._completing = 0  # futures being completed, outside the lock
        self._closing = self._closed = False
        self._threads: list[threading.Thread] = []
        self.is_down = False  # a call failed; the thread tries to connect until the writer answers

    def submit(self, pending: Pending, *, wait: bool = True) -> None:
        """Send *pending*. With *wait*, wait for room in flight.

        raises StoreClosedError if closed, InFlightLimitError if there is no room before its deadline
        """
        with self._lock:
            if wait and not self._room.wait_for(
                lambda: self._closing or self._pending.have_room(pending.size, pending.count),
                pending.deadline - time.monotonic(),
            ):
                limits = self._pending.limits
                raise InFlightLimitError(
                    "no room in flight before the deadline: the writer is too slow",
                    limit_bytes=limits.max_bytes,
                    size=pending.size,
                )
            if self._closing:
                raise StoreClosedError("this producer is closed")
            self._start()
            self._pending.add(pending)
            self._sendable.notify_all()
            self._watch(pending.deadline)

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
        return not self._completing and not len(self._pending)

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until everything submitted is answered or given up; return False after *timeout_s*."""
        with self._lock:
            return self._room.wait_for(self._is_idle, timeout_s)

    def unanswered_messages(self) -> int:
        """Return the number of submitted and unanswered messages."""
        with self._lock:
            return self._pending.messages

    def close(self, deadline: float | None = None) -> None:
        """Wait for answers until *deadline* (default: for the timeout), and close the stream."""
        with self._lock:
            self._closing = True
            self._room.notify_all()
        self.flush(self._timeout_s if deadline is None else max(0.0, deadline - time.monotonic()))
        with self._lock:
            self._closed = True
            left = self._pending.drain()
            call = self._call
            for condition in (self._sendable, self._room, self._timers):
                condition.notify_all()
        for pending in left:
            pending.future.set_exception(pending.expiry())
        if call is not None:
            call.cancel()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _start(self) -> None:
        if not self._threads:
            self._threads = [
                threading.Thread(target=target, name=f"tidemark-{name}", daemon=True)
                for name, target in (("append", self._run), ("deadlines", self._run_timers))
            ]
            for thread in self._threads:
                thread.start()

    # ── the stream ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while self._wait_for_work():
            if not self._connect():
                continue
            with self._lock:
                self._stream_number += 1
                call = self._call = self._append(self._frames(self._stream_number))
            error, resume = self._read_answers(call)
            del call  # do not keep the ended call while waiting for more batches
            self._break(error, resume=resume)

    def _read_answers(self, call: Iterable[commit_log_pb2.AppendStreamResponse]) -> tuple[StoreError, bool]:
        """Read until the stream ends; return the reason, and True if a new stream may continue."""
        try:
            for response in call:
                self._settle(response.results)
        except grpc.RpcError as failure:
            # The failure is the call itself. With its traceback it would be a reference cycle, which may be collected
            # as late as the interpreter's exit: gRPC would then wait for a lock held by threads that no longer exist.
            failure.__traceback__ = None
            return error_of_rpc(failure), may_resume(failure)
        return StoreClosedError("the writer ended the stream"), True

    def _wait_for_work(self) -> bool:
        with self._lock:
            self._sendable.wait_for(lambda: self._closed or self.is_down or self._pending.has_frame)
            return not self._closed

    def _connect(self) -> bool:
        """Return True if the writer answers. Checked first, so that a batch counts as sent only if it may arrive."""
        try:
            request = commit_log_pb2.GetLogInfoRequest()
            self._stub.GetLogInfo(request, timeout=_CONNECT_SLICE_S, wait_for_ready=True)
        except grpc.RpcError as failure:
            if not is_answer(failure):
                self._give_back(error_of_rpc(failure))
                self._look_for_a_cause()
                return False
        self.is_down = False
        self.has_connected = True
        return True

    def _look_for_a_cause(self) -> None:
        """Record why the writer does not answer. Fail all waiting batches if no writer can be at its address."""
        now = time.monotonic()
        if self._explain is None or now < self._explain_at:
            return
        self._explain_at = now + _LOOK_EVERY_S
        error, is_final = self._explain()
        with self._lock:
            failed = self._pending.explain(error, remove=is_final)
            self._completing += len(failed)
        self._complete([partial(pending.future.set_exception, error) for pending in failed])

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

    def _frames(self, stream_number: int) -> Iterator[bytes]:
        """Yield frames for one stream, until another stream replaces it. Runs in gRPC's thread."""

        def is_over() -> bool:
            return self._closed or stream_number != self._stream_number

        while True:
            with self._lock:
                self._sendable.wait_for(lambda: is_over() or self._pending.has_frame)
                if is_over():
                    return
                frame = self._pending.take_frame()
            yield encode_frame((pending.correlation_id, pending.request, pending.packed) for pending in frame)

    def _break(self, error: StoreError, *, resume: bool) -> None:
        """Handle the end of the stream: prepare its batches for the next stream, or fail them."""
        with self._lock:
            self._stream_number += 1
            self._call = None
            self.is_down = resume
            self._sendable.notify_all()
            given_up = self._pending.stream_broke(error)
            if not resume:
                given_up += self._pending.drain()
            self._completing += len(given_up)
            closed = self._closed
        self._complete([partial(pending.future.set_exception, error) for pending in given_up])
        if not closed:
            time.sleep(_BROKEN_PAUSE_S)

    # ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _settle(self, results: Iterable[commit_log_pb2.AppendStreamResponse.Result]) -> None:
        outcomes: list[_Outcome] = []
        with self._lock:
            for result in results:
                outcome = self._appended(result) if result.HasField("appended") else self._refused(result)
                if outcome is not None:
                    outcomes.append(outcome)
            self._completing += len(outcomes)
            self._room.notify_all()
            if self._pending.has_frame:
                self._sendable.notify_all()
        self._complete(outcomes)

    def _complete(self, outcomes: Sequence[_Outcome]) -> None:
        """Complete futures that `_completing` counts. Without the lock, because callbacks may submit again."""
        for complete in outcomes:
            complete()
        if outcomes:
            with self._lock:
                self._completing -= len(outcomes)
                self._room.notify_all()

    def _appended(self, result: commit_log_pb2.AppendStreamResponse.Result) -> _Outcome | None:
        pending = self._pending.settle(result.correlation_id)
        if pending is None:
            return None
        return partial(_answer, pending, result.appended, self._address)

    def _refused(self, result: commit_log_pb2.AppendStreamResponse.Result) -> _Outcome | None:
        pending = self._pending.find(result.correlation_id)
        if pending is None:
            return None
        error = error_of_status(result.error)
        if is_retryable(error) and not (pending.repeat is Repeat.NEVER or (pending.may_move and is_definite(error))):
            pending.last_error = error
            delay_s = retry_delay_s(result.error) or min(_FIRST_DELAY_S * 2**pending.refusals, _GREATEST_DELAY_S)
            due = time.monotonic() + delay_s
            self._pending.delay(pending, due=due)
            self._watch(due)
            return None
        self._pending.settle(result.correlation_id)
        return partial(pending.future.set_exception, error)

    # ── deadlines and delays ────────────────────────────────────────────────────────────────────────────────────────

    def _watch(self, event: float) -> None:
        """Ensure that the watcher wakes up at *event*."""
        if event < self._watch_until:
            self._watch_until = event
            self._timers.notify()

    def _run_timers(self) -> None:
        while True:
            with self._lock:
                if self._closed:
                    return
                now = time.monotonic()
                if self._watch_until > now:
                    self._timers.wait(None if self._watch_until == float("inf") else self._watch_until - now)
                    continue
                expired = self._pending.expire(now)
                if self._pending.wake_delayed(now) or expired:
                    self._sendable.notify_all()
                self._watch_until = self._pending.next_event()
                self._completing += len(expired)
            self._complete([partial(pending.future.set_exception, pending.expiry()) for pending in expired])


def _answer(pending: Pending, response: commit_log_pb2.AppendBatchResponse, writer: str) -> None:
    try:
        pending.future.set_result(
            SendResult.of(pending.request, response, writer=writer, message_ids=pending.message_ids)
        )
    except ValueError as error:  # an answer that this client does not know fails one send, not the stream
        pending.future.set_exception(StoreError(f"the writer's answer is not understood: {error}"))
