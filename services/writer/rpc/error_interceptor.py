"""ErrorInterceptor: turns exceptions into gRPC statuses, for all methods."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, NoReturn

import grpc
import structlog
from google.protobuf.message import DecodeError
from grpc_status import rpc_status

from tidemark.errors import ArgumentIllegalError, DeadlineMissingError, StoreError

from ..submission.answers import rpc_status_of
from .request_id_interceptor import request_id_metadata
from .wrapped_handlers import Context, Continuation, Stream, Unary, around, is_ours

log = structlog.get_logger()
_Decode = Callable[[Any], Any] | None  # None: requests are a stream, which gRPC decodes


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """Answers a StoreError with its rich status. Any other exception is a bug, which is logged and answered INTERNAL.

    require_deadline: reject unary calls without a deadline; streams are exempt, because they are meant to last.
    """

    def __init__(self, *, require_deadline: bool = False) -> None:
        self._require_deadline = require_deadline

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler: Any = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or not is_ours(method):
            return handler  # type: ignore[no-any-return]
        # Requests are decoded here, because gRPC itself would log malformed bytes as a bug of the server.
        decode: _Decode = None if handler.request_streaming else handler.request_deserializer
        unary = partial(_unary, method, decode)
        return around(
            handler,
            (lambda behavior: unary(_in_time(behavior))) if self._require_deadline else unary,
            partial(_stream, method, decode),
            decodes=False,
        )


def _unary(method: str, decode: _Decode, behavior: Unary) -> Unary:
    async def answer(request: Any, context: Context) -> Any:
        context.set_trailing_metadata(request_id_metadata())
        try:
            return await behavior(decode(request) if decode else request, context)
        except Exception as error:
            await _abort(context, error, method)

    return answer


def _stream(method: str, decode: _Decode, behavior: Stream) -> Callable[..., AsyncIterator[Any]]:
    async def answer(request: Any, context: Context) -> AsyncIterator[Any]:
        context.set_trailing_metadata(request_id_metadata())
        try:
            asked = decode(request) if decode else request
            async with contextlib.aclosing(behavior(asked, context)) as responses:
                async for response in responses:
                    yield response
        except Exception as error:
            await _abort(context, error, method)

    return answer


def _in_time(behavior: Unary) -> Unary:
    async def answer(request: Any, context: Context) -> Any:
        if context.time_remaining() is None:
            raise DeadlineMissingError(
                "the call has no deadline, and this writer requires one (TIDEMARK_REQUIRE_DEADLINE): set a timeout"
            )
        return await behavior(request, context)

    return answer


async def _abort(context: Context, error: Exception, method: str) -> NoReturn:
    if isinstance(error, grpc.aio.AbortError):
        raise error
    if isinstance(error, DecodeError):
        error = ArgumentIllegalError("the request is not a valid protobuf message of this method", argument="request")
    if not isinstance(error, StoreError):
        log.exception("request_failed", method=method)
    status: Any = rpc_status.to_status(rpc_status_of(error))
    await context.abort(status.code, status.details, (*status.trailing_metadata, *request_id_metadata()))
    raise AssertionError("abort raises")
