from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from services.writer.rpc.error_interceptor import ErrorInterceptor
from services.writer.rpc.request_id_interceptor import RequestIdInterceptor
from tests.unit.writer.rpc.served import CALL, LONG_S, Log, connected, reason_of, value_of
from tidemark.errors import QueueIllegalError
from tidemark.v1.commit_log_pb2 import AppendStreamRequest, GetLogInfoRequest, WatchCommittedRequest
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub

REFUSAL = QueueIllegalError("no such queue", queue_id=9, queues=4)
Call = Callable[[Any], Coroutine[Any, Any, int]]


async def unary(stub: Any) -> int:
    await stub.GetLogInfo(GetLogInfoRequest(), timeout=LONG_S)
    return 1


async def server_stream(stub: Any) -> int:
    return len([response async for response in stub.WatchCommitted(WatchCommittedRequest(), timeout=LONG_S)])


async def both_streams(stub: Any) -> int:
    async def requests() -> AsyncIterator[AppendStreamRequest]:
        yield AppendStreamRequest()

    return len([response async for response in stub.AppendStream(requests(), timeout=LONG_S)])


CALLS = {"GetLogInfo": unary, "WatchCommitted": server_stream, "AppendStream": both_streams}


def failure_of(call: Call, error: Exception) -> grpc.aio.AioRpcError:
    """Return the error that the caller gets for a method that raises *error*."""

    async def run() -> None:
        async with connected(Log(error), RequestIdInterceptor(), ErrorInterceptor()) as channel:
            await call(CommitLogServiceStub(channel))

    with pytest.raises(grpc.aio.AioRpcError) as failed:
        asyncio.run(run())
    return failed.value


@pytest.mark.parametrize("method", CALLS)
def test_store_error_of_any_kind_of_method_is_answered_with_its_status(method: str) -> None:
    with capture_logs() as logs:
        failed = failure_of(CALLS[method], REFUSAL)
    assert (failed.code(), failed.details()) == (grpc.StatusCode.INVALID_ARGUMENT, str(REFUSAL))
    assert reason_of(failed) == "QUEUE_ID_ILLEGAL"
    assert value_of(failed.trailing_metadata(), "x-request-id"), "the answer names the call"
    assert logs == [], "a refusal is no fault of the writer"


@pytest.mark.parametrize("method", CALLS)
def test_other_exception_is_logged_with_its_method_and_answered_without_its_text(method: str) -> None:
    with capture_logs() as logs:
        failed = failure_of(CALLS[method], RuntimeError("a secret path"))
    assert failed.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in f"{failed.details()} {failed.trailing_metadata()}"
    assert [(event["event"], event["log_level"], event["method"]) for event in logs] == [
        ("request_failed", "error", CALL + method)
    ]


@pytest.mark.parametrize("method", CALLS)
def test_success_has_all_responses_and_the_callers_request_id(method: str) -> None:
    async def run() -> None:
        async with connected(Log(), RequestIdInterceptor(), ErrorInterceptor()) as channel:
            assert await CALLS[method](CommitLogServiceStub(channel)) == (2 if method == "WatchCommitted" else 1)
            call = channel.unary_unary(CALL + "GetLogInfo")(b"", metadata=(("x-request-id", "mine-7"),))
            assert value_of(list(await call.trailing_metadata()), "x-request-id") == "mine-7"

    asyncio.run(run())


def test_responses_before_an_error_reach_the_caller() -> None:
    async def run() -> None:
        async with connected(Log(REFUSAL, responses=3), ErrorInterceptor()) as channel:
            responses = CommitLogServiceStub(channel).WatchCommitted(WatchCommittedRequest(), timeout=LONG_S)
            assert [(await responses.read()).committed_offset for _ in range(3)] == [0, 1, 2]
            with pytest.raises(grpc.aio.AioRpcError):
                await responses.read()

    asyncio.run(run())


@pytest.mark.parametrize("method", ["GetLogInfo", "WatchCommitted"])
def test_malformed_request_bytes_are_refused_and_are_not_logged_as_a_bug(method: str) -> None:
    async def run() -> None:
        async with connected(Log(), ErrorInterceptor()) as channel:
            if method == "GetLogInfo":
                await channel.unary_unary(CALL + method)(b"\xff\xff", timeout=LONG_S)
            else:
                async for _ in channel.unary_stream(CALL + method)(b"\xff\xff", timeout=LONG_S):
                    pass

    with capture_logs() as logs, pytest.raises(grpc.aio.AioRpcError) as failed:
        asyncio.run(run())
    assert reason_of(failed.value) == "ARGUMENT_ILLEGAL"
    assert logs == []


def test_required_deadline_refuses_a_unary_call_without_one_and_exempts_streams() -> None:
    async def run() -> None:
        service = Log()
        async with connected(service, ErrorInterceptor(require_deadline=True)) as channel:
            stub: Any = CommitLogServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await stub.GetLogInfo(GetLogInfoRequest())
            assert (reason_of(failed.value), service.calls) == ("DEADLINE_MISSING", [])
            await stub.GetLogInfo(GetLogInfoRequest(), timeout=LONG_S)
            assert len([response async for response in stub.WatchCommitted(WatchCommittedRequest())]) == 2

    asyncio.run(run())
