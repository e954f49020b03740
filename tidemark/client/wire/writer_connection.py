"""WriterLink: one connection to a writer, for all calls and appends."""

from __future__ import annotations

import threading
import time

import grpc

from tidemark.client.wire.append_stream import WriterStream
from tidemark.client.wire.batch_stream import CONNECT_SLICE_S, BatchStream
from tidemark.client.wire.frame_socket import FrameSocket
from tidemark.client.wire.group_watch import GroupWatch
from tidemark.client.wire.lone_send import LoneSendStream
from tidemark.client.wire.pending_batches import PendingLimits
from tidemark.client.wire.store_members import StoreMembers
from tidemark.client.wire.topic_admin import Topics
from tidemark.client.wire.wire import Wire, may_use
from tidemark.client.wire.writer_latency import Latency
from tidemark.errors import (
    MessageSizeExceededError,
    StoreError,
    TlsFilesError,
    WriterUnreachableError,
)
from tidemark.format.primitives import MAX_MESSAGE_SIZE_BYTES
from tidemark.tls.credentials import Credentials
from tidemark.v1 import commit_log_pb2, topics_pb2
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub
from tidemark.v1.topics_pb2_grpc import TopicServiceStub

_UNREACHED_S = 30.0  # until the next try to connect to an offered address that could not be reached


class WriterLink:
    """A stream of batches and calls to the writer at *address*, or to the one of the group's members that writes.

    It connects at its first use.

    wire    grpc: always use gRPC. remoting: send batches in remoting frames if the writer offers them
    stream  the stream of batches. Before the first batch it is gRPC's
    """

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float,
        limits: PendingLimits,
        credentials: Credentials,
        wire: Wire = "remoting",
    ) -> None:
        self.address = address
        self._limits = limits
        self._choosing = threading.Lock()
        self._offered_by = ""  # the member that has made the offer
        self._offer = ""  # host:port of the writer's remoting frames; empty: none, or not known yet
        self._choose_at = 0.0 if wire == "remoting" else float("inf")  # time.monotonic() of the next try to switch
        self._credentials = credentials
        self._timeout_s = timeout_s
        self._members = StoreMembers(address, credentials)
        self.stream: BatchStream = WriterStream(
            self._members,
            address,
            timeout_s=timeout_s,
            limits=limits,
            explain=self._explain_silence,
            on_offer=self.offer,
        )
        self.topics = Topics(timeout_s=timeout_s, members=self._members)
        self.latency = Latency()
        self._watch: GroupWatch | None = None
        self._greatest_batch: int | None = None

    # ── the choice of the wire ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_choosing(self) -> bool:
        """Return True if the next batch may first connect to the address that the writer offers."""
        return bool(self._offer) and time.monotonic() >= self._choose_at

    def offer(self, remoting_address: str) -> None:
        """Note the address that the writer offers for remoting frames: host:port, or empty for none."""
        self._offered_by = self._members.address
        self._offer = remoting_address if may_use(remoting_address, self._members.address) else ""

    def chosen_stream(self) -> BatchStream:
        """Return the stream for the next batch. It becomes remoting once nothing is in flight over gRPC."""
        if self._members.is_group and self._watch is None:
            self._start_watch()
        if self.is_choosing:
            with self._choosing:
                if self.is_choosing and self.stream.is_idle:
                    self._choose()
        return self.stream

    def _start_watch(self) -> None:
        with self._choosing:
            if self._watch is None:
                self._watch = GroupWatch(self._members, lambda: self.stream)
                self._watch.start()

    def _choose(self) -> None:
        assert self._offer
        connection = self._connect(self._offer)
        if connection is None:
            self._choose_at = time.monotonic() + _UNREACHED_S
            return
        before = self.stream
        if not before.retire():  # another thread has sent a batch meanwhile
            connection.close()
            return
        self._choose_at = float("inf")
        self.stream = LoneSendStream(
            self.address,
            self._offer,
            credentials=self._credentials,
            timeout_s=self._timeout_s,
            limits=self._limits,
            explain=self._explain_silence,
            members=self._members if self._members.is_group else None,
            connection=connection,
        )
        self.stream.has_connected, self.stream.member = True, self._offered_by
        before.close(time.monotonic())

    def _connect(self, remoting_address: str) -> FrameSocket | None:
        """Return a connection; None if the address cannot be reached from here, as in a network with other names."""
        is_tls = self._credentials.target(self._members.address).is_tls
        try:
            return FrameSocket.connect(remoting_address, self._credentials, is_tls=is_tls, timeout_s=CONNECT_SLICE_S)
        except (OSError, ValueError, TlsFilesError):
            return None

    # ── calls ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def log_info(self) -> commit_log_pb2.GetLogInfoResponse:
        """Return the current bounds, limits and identity of the writer's log."""
        answer: commit_log_pb2.GetLogInfoResponse = self._members.call(
            lambda channel: CommitLogServiceStub(channel).GetLogInfo,
            commit_log_pb2.GetLogInfoRequest(),
            timeout_s=self._timeout_s,
        )
        return answer

    def wrong_address(self) -> StoreError | None:
        """Return the error for an address at which no writer can be, according to one dial.

        None after a writer has answered there: its name may be unknown while it restarts.
        """
        if self.stream.has_connected:
            return None
        return self._members.wrong_address()

    def _explain_silence(self) -> tuple[StoreError, bool]:
        """Return the reason why the writer does not answer, and True if waiting cannot help."""
        wrong = self.wrong_address()
        if wrong is not None:
            return wrong, True
        return self.with_cause(WriterUnreachableError("the writer did not answer in time; nothing was sent")), False

    def with_cause(self, error: StoreError) -> StoreError:
        """Return *error* of a call to this writer, or the TlsFailedError that caused it."""
        return self._members.with_cause(error)

    def ask_route(self, topic: str) -> grpc.Future[topics_pb2.GetRouteResponse]:
        """Request the writer's route for *topic*; return the future of its answer."""
        answer: grpc.Future[topics_pb2.GetRouteResponse] = self._members.begin(
            lambda channel: TopicServiceStub(channel).GetRoute,
            topics_pb2.GetRouteRequest(name=topic),
            timeout_s=self._timeout_s,
        )
        return answer

    def require_transportable(self, size: int) -> None:
        """Reject a batch that would end the stream for all: the transport's limit is twice the writer's batch limit."""
        if size <= MAX_MESSAGE_SIZE_BYTES:
            return
        if self._greatest_batch is None:
            self._greatest_batch = self.log_info().max_message_size_bytes
        if size > 2 * self._greatest_batch:
            raise MessageSizeExceededError(
                f"the batch is {size:,} bytes; the writer's limit is {self._greatest_batch:,}",
                size=size,
                limit=self._greatest_batch,
            )

    def is_slow(self) -> bool:
        """Return True if sends should avoid this writer: it answered late, or does not answer."""
        return self.latency.is_avoided(time.monotonic(), waiting_s=self.stream.waiting_s())

    def close(self, deadline: float | None = None) -> None:
        """Wait for answers until *deadline* (default: for the timeout), and close the connection."""
        if self._watch is not None:
            self._watch.close()
        self.stream.close(deadline)
        self._members.close()
