"""A gRPC server on the test's event loop, whose methods a test chooses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from services.writer.rpc.channel_options import Options
from tidemark.v1.commit_log_pb2 import (
    AppendStreamRequest,
    AppendStreamResponse,
    GetLogInfoRequest,
    GetLogInfoResponse,
    WatchCommittedRequest,
    WatchCommittedResponse,
)
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceServicer, add_CommitLogServiceServicer_to_server

LONG_S = 20.0
CALL = "/tidemark.v1.CommitLogService/"


class Log(CommitLogServiceServicer):
    """A service of three kinds of methods. *error* is raised after the responses; *calls* has each method that ran."""

    def __init__(self, error: Exception | None = None, *, responses: int = 2) -> None:
        self.error = error
        self.responses = responses
        self.calls: list[str] = []

    def _finish(self) -> None:
        if self.error is not None:
            raise self.error

    async def GetLogInfo(self, request: GetLogInfoRequest, context: Any) -> GetLogInfoResponse:  # noqa: N802
        self.calls.append("GetLogInfo")
        self._finish()
        return GetLogInfoResponse(store_name="fake")

    async def WatchCommitted(  # noqa: N802
        self, request: WatchCommittedRequest, context: Any
    ) -> AsyncIterator[WatchCommittedResponse]:
        self.calls.append("WatchCommitted")
        for number in range(self.responses):
            yield WatchCommittedResponse(committed_offset=number)
        self._finish()

    async def AppendStream(  # noqa: N802
        self, request_iterator: AsyncIterator[AppendStreamRequest], context: Any
    ) -> AsyncIterator[AppendStreamResponse]:
        self.calls.append("AppendStream")
        async for request in request_iterator:
            results = [AppendStreamResponse.Result(correlation_id=entry.correlation_id) for entry in request.batches]
            yield AppendStreamResponse(results=results)
        self._finish()

    def _unimplemented(self, request: Any, context: Any) -> Any:
        raise NotImplementedError

    AppendBatch = ReadLog = SendBack = _unimplemented


@asynccontextmanager
async def serving(
    service: CommitLogServiceServicer,
    *interceptors: grpc.aio.ServerInterceptor,
    options: Options = (),
    credentials: grpc.ServerCredentials | None = None,
) -> AsyncIterator[str]:
    """Serve *service* on a free port of 127.0.0.1, and yield the address."""
    server = grpc.aio.server(interceptors=interceptors, options=options)
    add: Any = add_CommitLogServiceServicer_to_server
    add(service, server)
    address = "127.0.0.1:0"
    port = server.add_insecure_port(address) if credentials is None else server.add_secure_port(address, credentials)
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@asynccontextmanager
async def connected(
    service: CommitLogServiceServicer, *interceptors: grpc.aio.ServerInterceptor, options: Options = ()
) -> AsyncIterator[Any]:
    """Serve *service*, and yield a `grpc.aio.Channel` to it."""
    async with (
        serving(service, *interceptors, options=options) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        yield channel


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """Return the stable reason of a refusal, from its ErrorInfo."""
    status: Any = rpc_status.from_call(error)
    info = error_details_pb2.ErrorInfo()
    assert any(detail.Unpack(info) for detail in status.details), "no ErrorInfo"
    return str(info.reason)


def value_of(metadata: Iterable[tuple[str, Any]] | None, name: str) -> Any:
    """Return the first value of *name*; None if there is none."""
    return next((value for key, value in metadata or () if key == name), None)
