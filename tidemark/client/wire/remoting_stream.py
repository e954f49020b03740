"""RemotingStream: batches in remoting frames on one connection.

A caller that waits for its own batch sends it and reads the answers itself, and a task's event loop reads them for it,
so no other thread takes part when nothing else is in flight. One thread at a time reads: such a caller, the loop's, or
the stream's own thread, which also connects again and handles deadlines and repeats.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

import orjson
from google.protobuf.message import DecodeError

from tidemark.client.send_result import SendResult
from tidemark.client.wire.answer_reader import AnswerReader
from tidemark.client.wire.append_frame import encode_entry
from tidemark.client.wire.batch_stream import BROKEN_PAUSE_S, CONNECT_SLICE_S, BatchStream
from tidemark.client.wire.driven_future import DrivenFuture
from tidemark.client.wire.frame_socket import FrameSocket
from tidemark.client.wire.loop_reader import LoopFuture, LoopReader
from tidemark.client.wire.pending_batches import FRAME_BYTES, Pending, PendingLimits
from tidemark.client.wire.store_members import StoreMembers
from tidemark.errors import FrameIllegalError, StoreError, TlsFilesError, WriterUnreachableError
from tidemark.remoting.codes import ResponseCode, TidemarkCode
from tidemark.remoting.frame import Frame
from tidemark.remoting.prepared_head import RequestHead, success_body
from tidemark.remoting.refusal import FACTS, REASON, TOKEN
from tidemark.status import error_of
from tidemark.tls.credentials import Credentials
from tidemark.v1 import commit_log_pb2

LONGEST_WAIT_S = 0.25  # until the next look at deadlines
_LINGER_S = 0.005  # the thread keeps reading for this long after the last answer, because a program often sends again
MAX_OPAQUE = 0x7FFFFFFF
_MAX_UNANSWERED_FRAMES = 5  # further batches gather meanwhile, because few large frames cost both sides less
CONNECTION_FAULTS = (OSError, FrameIllegalError, DecodeError, ValueError)  # of received bytes
_BEARER = "Bearer "
_HEAD_WITHOUT_TOKEN = RequestHead(TidemarkCode.APPEND, {})


class RemotingStream(BatchStream):
    """The connection to the writer at *address*, which serves remoting frames at *remoting_address*.

    members     of a group: the address that the present writer offers is asked for at each connection
    connection  the first connection; None: connect at the first batch
    """

    def __init__(
        self,
        address: str,
        remoting_address: str,
        *,
        credentials: Credentials,
        timeout_s: float,
        limits: PendingLimits,
        explain: Callable[[], tuple[StoreError, bool]] | None = None,
        members: StoreMembers | None = None,
        connection: FrameSocket | None = None,
    ) -> None:
        super().__init__(address, timeout_s=timeout_s, limits=limits, explain=explain, is_group=members is not None)
        self._remoting_address = remoting_address
        self._members = members
        self._credentials = credentials
        self._shows_token = credentials.shows_token
        self._is_tls = credentials.target(address).is_tls  # a group uses it everywhere or nowhere
        self._socket = connection
        self._sending = threading.Lock()  # held while a frame is sent; frames go out in the order of their batches
        self._reading = threading.Lock()  # held by the one thread that connects and reads
        self._loop_reader: LoopReader | None = None
        self._is_thread_wanted = False  # batches are in flight that have no other reader
        self._heard_at = float("-inf")  # time.monotonic() of the last answer on this connection
        self._connect_at = 0.0  # time.monotonic() of the earliest next connection
        self._opaque = itertools.count(1)
        self._frames: dict[int, list[int]] = {}  # correlation ids of each unanswered frame, by its opaque number

    def future(self, reader: AnswerReader) -> Future[SendResult]:
        """Return a future for a batch of which *reader* reads the answer. Call it where the batch is sent."""
        if reader is AnswerReader.CALLER:
            return DrivenFuture(self._drive)
        return LoopFuture(asyncio.get_running_loop()) if reader is AnswerReader.LOOP else Future()

    # ── sending ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def submit(self, pending: Pending, *, wait: bool = True) -> None:
        """Send *pending* as `BatchStream.submit` does, in the caller's thread if there is a connection."""
        if not self._pending.unanswered:
            self._look_at_connection()
        elif not super().has_room(pending.size):
            self._leave()  # a caller that was interrupted does not read
        super().submit(pending, wait=wait)
        self._send_ready()

    def has_room(self, size: int) -> bool:
        """Return True if `submit` of one message would wait neither for room in flight nor for the other side."""
        connection = self._socket
        if not self._pending.unanswered and connection is not None and connection.takes_when_idle(size):
            return True
        if not super().has_room(size):
            return False
        try:
            return connection is None or connection.takes_now(self._pending.ready_bytes + size)
        except (OSError, ValueError):  # it has ended: `submit` does not wait for it
            return True

    def _look_at_connection(self) -> None:
        """Notice that the connection ended while nothing was in flight, so that no batch is sent on it."""
        if self._reading.acquire(blocking=False):
            try:
                connection = self._socket
                if connection is not None and connection.has_input():
                    self._receive(0)
            finally:
                self._reading.release()

    def _added(self, pending: Pending) -> None:
        future = pending.future
        if isinstance(future, LoopFuture):
            if not self._is_read_on(future.loop, pending.deadline):
                self._want_thread()
        elif not isinstance(future, DrivenFuture):
            self._want_thread()

    def _send_ready(self) -> None:
        """Send the ready batches, unless another thread does so: it looks again after each frame."""
        while self._has_frame and (connection := self._socket) is not None:
            if not self._sending.acquire(blocking=False):
                return
            try:
                data = self._take_frame(connection)
                if data is not None and (rest := connection.send_now(data)):
                    connection.send(rest, self._patience_s())
            except OSError:
                connection.end()  # the reading thread notices
                return
            except StoreError as error:  # the token cannot be read
                self._fail_waiting(error)
                return
            except BaseException:  # KeyboardInterrupt: perhaps a part of the frame was sent
                connection.end()
                self._leave()
                raise
            finally:
                self._sending.release()

    @property
    def _has_frame(self) -> bool:
        """Return True if a batch should be sent now."""
        if not self._pending.is_ready:
            return False
        return len(self._frames) < _MAX_UNANSWERED_FRAMES or self._pending.ready_bytes >= FRAME_BYTES

    def _patience_s(self) -> float:
        """Return how long to wait for the other side to take a frame: until the first deadline of all batches."""
        with self._lock:
            deadline = self._pending.first_deadline
        return 0.0 if deadline is None else max(0.0, deadline - time.monotonic())

    def _take_frame(self, connection: FrameSocket) -> bytes | None:
        head = self._request_head()
        opaque = next(self._opaque) & MAX_OPAQUE
        with self._lock:
            if self._socket is not connection:
                return None
            frame = self._pending.take_frame()
            if not frame:
                return None
            self._frames[opaque] = [pending.correlation_id for pending in frame]
        pieces = [b""]
        for pending in frame:
            pieces += encode_entry(pending.correlation_id, pending.request, pending.packed)
        pieces[0] = head.encode(opaque, sum(map(len, pieces)))
        return b"".join(pieces)

    def _request_head(self) -> RequestHead:
        """Return the head with the present token. Raises TokenFileError."""
        if not self._shows_token:
            return _HEAD_WITHOUT_TOKEN
        token = (self._credentials.authorization() or "").removeprefix(_BEARER)
        return RequestHead(TidemarkCode.APPEND, {TOKEN: token})

    def _fail_waiting(self, error: StoreError) -> None:
        """Fail the batches that were never sent."""
        with self._lock:
            failed = self._pending.explain(error, remove=True)
            self._completing += len(failed)
        self._complete([partial(pending.future.set_exception, error) for pending in failed])

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _drive(self, future: Future[SendResult]) -> None:
        """Read until *future* is done, if no other thread reads; that one completes it otherwise."""
        if self._reading.acquire(blocking=False):
            try:
                self._read_until(future.done)
            except BaseException:  # KeyboardInterrupt: perhaps received bytes are lost
                if self._socket is not None:
                    self._socket.end()
                raise
            finally:
                self._reading.release()
                self._leave()

    def _leave(self) -> None:
        """Let the stream's own thread read the answers to other callers' batches."""
        if not self._pending.unanswered:  # the caller of a later batch reads, or wakes the thread
            return
        with self._lock:
            if self._pending.unanswered:
                self._want_thread()

    def _want_thread(self) -> None:
        """Let the stream's own thread read until everything is answered. The caller holds the lock."""
        if not self._threads:
            self._threads = [threading.Thread(target=self._run, name="tidemark-append", daemon=True)]
            self._threads[0].start()
        if not self._is_thread_wanted:
            self._is_thread_wanted = True
            self._sendable.notify_all()

    # ── on an event loop ────────────────────────────────────────────────────────────────────────────────────────────

    def _is_read_on(self, loop: asyncio.AbstractEventLoop, deadline: float) -> bool:
        """Let *loop* read; return False if it cannot, as without a connection. The caller runs on it and has the lock.

        deadline: time.monotonic() at which the batch is given up.
        """
        connection, reader = self._socket, self._loop_reader
        if connection is None:
            return False
        if reader is not None and reader.loop.is_closed():
            reader.close_left()
            reader = None
        if reader is None:
            reader = self._loop_reader = LoopReader(
                loop, read=self._read_now, pass_time=self._look_at_time, longest_wait_s=LONGEST_WAIT_S
            )
        return reader.loop is loop and reader.watch(connection, deadline)

    def _read_now(self) -> None:
        """Read the answers that have arrived, unless another thread is reading."""
        if not self._reading.acquire(blocking=False):
            return
        try:
            self._receive(0)
            while self._socket is not None and self._socket.has_decrypted():
                self._receive(0)
        finally:
            self._reading.release()
        if not self._pending.unanswered:
            return
        if not self._is_sent_now():
            self._leave()
        elif self._loop_reader is not None:
            self._loop_reader.expect(self._pending.next_event())

    def _is_sent_now(self) -> bool:
        """Send the ready batches if the other side takes them without a wait; return False otherwise."""
        connection = self._socket
        if connection is None:
            return False
        if self._has_frame:
            try:
                if not connection.takes_now(self._pending.ready_bytes):
                    return False
            except (OSError, ValueError):  # it has ended
                return False
            self._send_ready()
        return self._socket is not None

    def _look_at_time(self) -> float | None:
        """Return the time of the next deadline or repeat; None if nothing is in flight.

        The thread handles one that has passed.
        """
        with self._lock:
            if not self._pending.unanswered:
                return None
            event = self._pending.next_event()
            if time.monotonic() >= event:
                self._want_thread()
                return float("inf")
            return event

    # ── reading in threads ──────────────────────────────────────────────────────────────────────────────────────────

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until everything submitted is answered or given up; return False after *timeout_s*."""
        self._leave()
        return super().flush(timeout_s)

    def _run(self) -> None:
        while True:
            with self._lock:
                self._sendable.wait_for(lambda: self._closed or self._is_thread_wanted)
                if self._closed:
                    return
            with self._reading:
                self._read_until(self._is_quiet)
            with self._lock:
                self._is_thread_wanted = bool(self._pending.unanswered)

    def _is_quiet(self) -> bool:
        """Return True if nothing is in flight, even after a short wait."""
        if not self._pending.unanswered:
            self._receive(_LINGER_S)
        return not self._pending.unanswered

    def _read_until(self, is_done: Callable[[], bool]) -> None:
        while not is_done() and not self._closed:
            if self._socket is None and not self._connect():
                continue
            self._send_ready()
            with self._lock:
                event = self._pending.next_event()
            self._receive(min(LONGEST_WAIT_S, max(0.0, event - time.monotonic())))
            if time.monotonic() >= event:
                self._pass_time(time.monotonic())

    def _fail_expired(self, expired: list[Pending]) -> None:
        """First end a connection on which nothing was received since an expired batch was given.

        A program that sends again once its future has failed then uses the next connection.
        """
        connection = self._socket
        if connection is not None and any(one.sent and one.given > self._heard_at for one in expired):
            connection.end()
        super()._fail_expired(expired)

    def _watch(self, event: float) -> None:
        """Do nothing: the reading thread looks at all events several times a second."""

    def _receive(self, wait_s: float) -> None:
        connection = self._socket
        if connection is None:
            return
        try:
            data = connection.receive_bytes(wait_s)
            if data:
                self._arrived(connection, data)
        except CONNECTION_FAULTS as error:
            self._lost(connection, error)

    def _arrived(self, connection: FrameSocket, data: bytes) -> None:
        """Handle the answers in *data*. Raises CONNECTION_FAULTS if the connection is of no more use."""
        with self._lock:
            opaque = next(iter(self._frames)) if len(self._frames) == 1 else None
        if opaque is not None and connection.is_between_frames:
            body = success_body(data, opaque)
            if body is not None:
                self._heard_at = time.monotonic()
                self._succeeded(opaque, body)
                return
        for frame in connection.frames(data):
            self._heard_at = time.monotonic()
            self._answered(frame)

    def _succeeded(self, opaque: int, body: bytes) -> None:
        results = commit_log_pb2.AppendStreamResponse.FromString(body).results
        with self._lock:
            self._frames.pop(opaque, None)
        self._settle(results)

    def _answered(self, frame: Frame) -> None:
        if not frame.is_answer:
            return
        if frame.code == ResponseCode.GO_AWAY:
            raise ConnectionResetError(frame.remark)
        if frame.code == ResponseCode.SUCCESS:
            self._succeeded(frame.opaque, bytes(frame.body))
        else:
            self._refuse_all(frame)

    def _refuse_all(self, frame: Frame) -> None:
        """Handle the refusal of a whole frame, for example because of its token."""
        with self._lock:
            numbers = self._frames.pop(frame.opaque, [])
        facts = orjson.loads(frame.fields.get(FACTS, "{}"))
        error = error_of(frame.fields.get(REASON, ""), frame.remark, **facts)
        with self._lock:
            given = facts.get("retry_after_ms")
            delay_s = given / 1000 if isinstance(given, int) else None
            outcomes = [outcome for number in numbers if (outcome := self._refuse(number, error, delay_s)) is not None]
            self._completing += len(outcomes)
            self._notify_room()
        self._complete(outcomes)
        self._leave_replica()

    # ── the connection ──────────────────────────────────────────────────────────────────────────────────────────────

    def _connect(self) -> bool:
        time.sleep(max(0.0, self._connect_at - time.monotonic()))
        try:
            self._find_writer()
            connection = FrameSocket.connect(
                self._remoting_address, self._credentials, is_tls=self._is_tls, timeout_s=CONNECT_SLICE_S
            )
        except (OSError, TlsFilesError) as error:
            return self._failed_to_connect(WriterUnreachableError(f"{self._remoting_address}: {error}"))
        except StoreError as error:
            return self._failed_to_connect(error)
        self.is_down, self.has_connected = False, True
        self._heard_at = float("-inf")
        with self._lock:
            self._socket = connection
        return True

    def _failed_to_connect(self, error: StoreError) -> bool:
        """Handle *error*, and return False."""
        self._not_found(error)
        self._pass_time(time.monotonic())
        time.sleep(BROKEN_PAUSE_S)
        return False

    def _find_writer(self) -> None:
        """Find the address of the group's present writer. Raises StoreError."""
        if self._members is not None:
            writer = self._members.find(CONNECT_SLICE_S)
            if not writer.remoting_address:
                raise WriterUnreachableError(
                    f"{writer.address} offers no remoting frames, unlike the earlier writer: set "
                    "TIDEMARK_WRITER_REMOTING_LISTEN there, or use wire='grpc' (TIDEMARK_CLIENT_WIRE)"
                )
            self.member, self._remoting_address = writer.address, writer.remoting_address

    def leave_member(self) -> None:
        connection = self._socket
        if connection is not None:
            connection.end()

    def _lost(self, connection: FrameSocket, error: Exception) -> None:
        """Handle the end of the connection: its batches are sent again on the next one."""
        with self._lock:
            self._socket = None
            self._frames.clear()
        connection.end()
        with self._sending:  # no thread uses it any more
            self._close_connection(connection)
        self._broke(WriterUnreachableError(f"the connection to {self._remoting_address} ended: {error}"), resume=True)
        if self._pending.unanswered:  # perhaps its batches ended it
            self._connect_at = time.monotonic() + BROKEN_PAUSE_S

    def _close_connection(self, connection: FrameSocket) -> None:
        if self._loop_reader is None or not self._loop_reader.close(connection):
            connection.close()

    def _end(self) -> None:
        connection = self._socket
        if connection is not None:
            connection.end()
        with self._reading:
            if self._socket is not None:
                self._close_connection(self._socket)
                self._socket = None
        if self._loop_reader is not None:
            self._loop_reader.close_left()
