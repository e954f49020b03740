"""WriterStream: batches on one gRPC stream.

It has two threads: one opens the stream and reads answers, the other watches deadlines and delays. gRPC takes frames in
a third.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import grpc

from tidemark.client.errors.grpc_errors import error_of_rpc, may_resume
from tidemark.client.wire.append_frame import encode_frame
from tidemark.client.wire.batch_stream import BROKEN_PAUSE_S, CONNECT_SLICE_S, BatchStream
from tidemark.client.wire.pending_batches import Pending, PendingLimits
from tidemark.client.wire.store_members import StoreMembers
from tidemark.errors import StoreClosedError, StoreError
from tidemark.v1 import commit_log_pb2

_APPEND_STREAM = f"/{commit_log_pb2.DESCRIPTOR.services_by_name['CommitLogService'].full_name}/AppendStream"


class WriterStream(BatchStream):
    """One gRPC stream to the writer of the store at *address*, one of its *members*.

    on_offer  called with the address that the writer offers for remoting frames; empty for none
    """

    def __init__(
        self,
        members: StoreMembers,
        address: str,
        *,
        timeout_s: float,
        limits: PendingLimits,
        explain: Callable[[], tuple[StoreError, bool]] | None = None,
        on_offer: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(address, timeout_s=timeout_s, limits=limits, explain=explain, is_group=members.is_group)
        self._on_offer = on_offer
        self._members = members
        self._channel = members.channel
        self._timers = threading.Condition(self._lock)  # an event is earlier than the watcher's wait
        self._watch_until = float("inf")
        self._stream_number = 0
        self._call: grpc.Call | None = None

    def _added(self, pending: Pending) -> None:
        self._start()
        self._sendable.notify_all()
        self._watch(pending.deadline)

    def _end(self) -> None:
        with self._lock:
            call = self._call
            self._timers.notify_all()
        if call is not None:
            call.cancel()

    def leave_member(self) -> None:
        call = self._call
        if call is not None:
            call.cancel()

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
                call = self._call = self._open(self._frames(self._stream_number))
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
            writer = self._members.find(CONNECT_SLICE_S)
        except StoreError as error:
            self._not_found(error)
            return False
        self.member, self._channel = writer.address, writer.channel
        if writer.remoting_address is not None:
            self._on_offer(writer.remoting_address)
        self.is_down = False
        self.has_connected = True
        return True

    def _open(self, frames: Iterator[bytes]) -> Any:
        """Open a stream as the stub does, but for requests that are already bytes."""
        append: grpc.StreamStreamMultiCallable[bytes, Any] = self._channel.stream_stream(
            _APPEND_STREAM, response_deserializer=commit_log_pb2.AppendStreamResponse.FromString
        )
        return append(frames)

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
        self._broke(error, resume=resume)
        if not self._closed:
            time.sleep(BROKEN_PAUSE_S)

    # ── deadlines and delays ────────────────────────────────────────────────────────────────────────────────────────

    def _watch(self, event: float) -> None:
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
                self._watch_until = float("inf")  # `_pass_time` may find earlier events, which call `_watch`
            self._pass_time(now)
            with self._lock:
                self._watch(self._pending.next_event())
