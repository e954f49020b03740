"""StoreMembers: connections to the members of one store, of which one writes (docs/replication.md)."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import grpc

from tidemark.client.errors.address_faults import members_of, wrong_address
from tidemark.client.errors.grpc_errors import error_of_rpc, is_answer
from tidemark.client.errors.tls_faults import with_cause
from tidemark.client.wire.channel import open_channel
from tidemark.client.wire.unary_call import call_writer
from tidemark.errors import DeadlineExceededError, NotLeaderError, StoreError, WriterUnreachableError
from tidemark.tls.credentials import Credentials
from tidemark.v1.commit_log_pb2 import GetLogInfoRequest
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub

_SLICE_S = 1.0  # for the answers of all members
_PAUSE_S = 0.05  # between two searches
_NOT_NOW = (NotLeaderError, WriterUnreachableError, DeadlineExceededError)
MethodOf = Callable[[grpc.Channel], Any]
"""Returns a method of a stub on a channel."""


class Writer(NamedTuple):
    """The member that writes.

    remoting_address: where it offers remoting frames, "" for nowhere; None: it has answered with an error, which the
    next call will meet, too
    """

    address: str
    channel: grpc.Channel
    remoting_address: str | None


class StoreMembers:
    """The members of the store at *address*; see `members_of`. Thread-safe. It connects at the first call.

    credentials  default: from the environment. Raises TlsFilesError for unusable files

    address  the member that wrote when it was last asked; the first one before that
    """

    def __init__(self, address: str, credentials: Credentials | None = None) -> None:
        self.all = members_of(address)
        self.address = self.all[0]
        self.is_group = len(self.all) > 1
        self._credentials = credentials or Credentials.from_environment()
        self._channels = {one: open_channel(one, self._credentials, is_member=self.is_group) for one in self.all}
        self._callers: ThreadPoolExecutor | None = None
        self._making = threading.Lock()
        self._closing = threading.Event()

    @property
    def channel(self) -> grpc.Channel:
        """The channel to the member that writes."""
        return self._channels[self.address]

    def find(self, timeout_s: float) -> Writer:
        """Return the member that writes, after asking all of them.

        Raises:
            NotLeaderError: no member writes.
            WriterUnreachableError, DeadlineExceededError: no member answers.
            StoreError: another refusal of a member, which a further try would meet, too.
        """
        return self._find_member(timeout_s) if self.is_group else self._ask_the_only_one(timeout_s)

    def _ask_the_only_one(self, timeout_s: float) -> Writer:
        ask = CommitLogServiceStub(self.channel).GetLogInfo
        try:
            offer: str | None = ask(GetLogInfoRequest(), timeout=timeout_s, wait_for_ready=True).remoting_address
        except grpc.RpcError as failure:
            if not is_answer(failure):
                raise error_of_rpc(failure) from failure
            offer = None
        return Writer(self.address, self.channel, offer)

    def _find_member(self, timeout_s: float) -> Writer:
        """Ask all at once, because one that hangs must not delay the others."""
        answers: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        calls = []
        for address, channel in self._channels.items():
            call = CommitLogServiceStub(channel).GetLogInfo.future(GetLogInfoRequest(), timeout=timeout_s)
            call.add_done_callback(partial(_put, answers, address))
            calls.append(call)
        errors: list[StoreError] = []
        try:
            for _ in calls:
                address, done = answers.get()
                failure = done.exception()
                if failure is None:
                    self.address = address
                    return Writer(address, self.channel, done.result().remoting_address)
                errors.append(error_of_rpc(failure))
        finally:
            for call in calls:
                call.cancel()
        raise min(errors, key=lambda error: (isinstance(error, _NOT_NOW), not isinstance(error, NotLeaderError)))

    def call(self, method_of: MethodOf, request: Any, *, timeout_s: float) -> Any:
        """Return the writer's answer to *request*. Raises as `call_writer`, also if no member writes in time.

        A group is asked again if the member that was found refuses as a replica.
        """
        if not self.is_group:
            return call_writer(method_of(self.channel), request, self.address, self._credentials, timeout_s=timeout_s)
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                channel = self.find(min(_SLICE_S, timeout_s)).channel
            except _NOT_NOW as error:
                reason: StoreError = error
            else:
                try:
                    return method_of(channel)(request, timeout=max(0.001, deadline - time.monotonic()))
                except grpc.RpcError as failure:
                    reason = error_of_rpc(failure)
                    if not isinstance(reason, NotLeaderError):
                        raise reason from failure
            if time.monotonic() > deadline or self._closing.wait(_PAUSE_S):
                raise WriterUnreachableError(
                    f"no member of {', '.join(self.all)} was the writer within {timeout_s:g} s: {reason.message}"
                ) from reason

    def begin(self, method_of: MethodOf, request: Any, *, timeout_s: float) -> Any:
        """Return the future of the writer's answer to *request*, gRPC's or one of the same methods."""
        if not self.is_group:
            return method_of(self.channel).future(request, timeout=timeout_s)
        with self._making:
            if self._callers is None:
                self._callers = ThreadPoolExecutor(1, "tidemark-route")
        future: Future[Any] = self._callers.submit(self.call, method_of, request, timeout_s=timeout_s)
        return future

    def wrong_address(self) -> StoreError | None:
        """Return the error for an address at which no writer can be, according to one dial; None for a group."""
        return None if self.is_group else wrong_address(self.address, self._credentials)

    def with_cause(self, error: StoreError) -> StoreError:
        """Return *error* of a call to the writer, or the TlsFailedError that caused it."""
        return with_cause(error, self.address, self._credentials)

    def close(self) -> None:
        """Close the connections."""
        self._closing.set()
        if self._callers is not None:
            self._callers.shutdown(wait=False, cancel_futures=True)
        for channel in self._channels.values():
            channel.close()


def _put(answers: queue.SimpleQueue[tuple[str, Any]], address: str, done: Any) -> None:
    answers.put((address, done))
