"""StoreMembers: connections to the members of one store, of which one writes (docs/replication.md)."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import grpc

from tidemark.client.errors.address_faults import members_of, wrong_address
from tidemark.client.errors.grpc_errors import error_of_rpc, is_answer
from tidemark.client.errors.tls_faults import with_cause
from tidemark.client.wire.channel import open_channel
from tidemark.client.wire.unary_call import call_writer
from tidemark.errors import NotLeaderError, StoreError, WriterUnreachableError
from tidemark.tls.credentials import Credentials
from tidemark.v1.commit_log_pb2 import GetLogInfoRequest, GetLogInfoResponse
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub

_SLICE_S = 1.0  # for the answers of all members
_PAUSE_S = 0.05  # between two searches
MethodOf = Callable[[grpc.Channel], Any]
"""Returns a method of a stub on a channel."""


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

    @property
    def channel(self) -> grpc.Channel:
        """The channel to the member that writes."""
        return self._channels[self.address]

    def find(self, timeout_s: float) -> GetLogInfoResponse | None:
        """Ask which member writes, and use its channel from now on. Return its answer.

        None: a server has answered with an error that the next call will meet, too.
        Raises NotLeaderError if no member writes, WriterUnreachableError or DeadlineExceededError if none answers.
        """
        return self._find_member(timeout_s) if self.is_group else self._ask_the_only_one(timeout_s)

    def _ask_the_only_one(self, timeout_s: float) -> GetLogInfoResponse | None:
        ask = CommitLogServiceStub(self.channel).GetLogInfo
        try:
            answer: GetLogInfoResponse = ask(GetLogInfoRequest(), timeout=timeout_s, wait_for_ready=True)
        except grpc.RpcError as failure:
            if is_answer(failure):
                return None
            raise error_of_rpc(failure) from failure
        return answer

    def _find_member(self, timeout_s: float) -> GetLogInfoResponse:
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
                    return done.result()  # type: ignore[no-any-return]
                errors.append(error_of_rpc(failure))
        finally:
            for call in calls:
                call.cancel()
        raise next((error for error in errors if not isinstance(error, WriterUnreachableError)), errors[0])

    def call(self, method_of: MethodOf, request: Any, *, timeout_s: float) -> Any:
        """Return the writer's answer to *request*. Raises as `call_writer`; NotLeaderError if no member writes."""
        if not self.is_group:
            return call_writer(method_of(self.channel), request, self.address, self._credentials, timeout_s=timeout_s)
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                self.find(min(_SLICE_S, timeout_s))
                return method_of(self.channel)(request, timeout=max(0.001, deadline - time.monotonic()))
            except grpc.RpcError as failure:
                error = error_of_rpc(failure)
                if not isinstance(error, NotLeaderError) or time.monotonic() > deadline:
                    raise error from failure
            except (NotLeaderError, WriterUnreachableError) as error:
                if time.monotonic() > deadline:
                    raise WriterUnreachableError(
                        f"no member of {', '.join(self.all)} was the writer within {timeout_s:g} s: {error.message}"
                    ) from error
            time.sleep(_PAUSE_S)

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
        if self._callers is not None:
            self._callers.shutdown(wait=False, cancel_futures=True)
        for channel in self._channels.values():
            channel.close()


def _put(answers: queue.SimpleQueue[tuple[str, Any]], address: str, done: Any) -> None:
    answers.put((address, done))
