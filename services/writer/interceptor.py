"""ErrorInterceptor: the one place where an exception becomes an RPC's status."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn

import grpc
import structlog
from grpc_status import rpc_status

from tidemark.errors import StoreError

from .answers import rpc_status_of

log = structlog.get_logger()

_Continuation = Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any] | None"]]


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """StoreErrors become their rich status; anything else is a bug: logged, and INTERNAL to the caller."""

    async def intercept_service(
        self, continuation: _Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler: Any = await continuation(handler_call_details)
        if handler is None:
            return None
        method = handler_call_details.method
        make = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }.get((handler.request_streaming, handler.response_streaming))
        if make is None or not method.startswith("/tidemark."):
            return handler  # type: ignore[no-any-return]
        behavior = handler.unary_unary or handler.unary_stream or handler.stream_stream
        wrapped = _stream(behavior, method) if handler.response_streaming else _unary(behavior, method)
        return make(
            wrapped,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )


def _unary(behavior: Callable[..., Awaitable[Any]], method: str) -> Callable[..., Awaitable[Any]]:
    async def answer(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        try:
            return await behavior(request, context)
        except Exception as error:
            await _abort(context, error, method)

    return answer


def _stream(behavior: Callable[..., AsyncGenerator[Any, None]], method: str) -> Callable[..., AsyncIterator[Any]]:
    async def answer(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
        try:
            async with contextlib.aclosing(behavior(request, context)) as responses:
                async for response in responses:
                    yield response
        except Exception as error:
            await _abort(context, error, method)

    return answer


async def _abort(context: grpc.aio.ServicerContext[Any, Any], error: Exception, method: str) -> NoReturn:
    if isinstance(error, grpc.aio.AbortError):
        raise error
    if not isinstance(error, StoreError):
        log.exception("request_failed", method=method)
    status: Any = rpc_status.to_status(rpc_status_of(error))
    await context.abort(status.code, status.details, status.trailing_metadata)
    raise AssertionError("abort raises")
