"""ErrorInterceptor: the one place where an exception becomes an RPC's status."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, NoReturn

import grpc
import structlog
from grpc_status import rpc_status

from tidemark.errors import StoreError

from .answers import rpc_status_of
from .handlers import Context, Continuation, Stream, Unary, around, is_ours

log = structlog.get_logger()


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """StoreErrors become their rich status; anything else is a bug: logged, and INTERNAL to the caller."""

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler: Any = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or not is_ours(method):
            return handler  # type: ignore[no-any-return]
        return around(handler, partial(_unary, method), partial(_stream, method))


def _unary(method: str, behavior: Unary) -> Unary:
    async def answer(request: Any, context: Context) -> Any:
        try:
            return await behavior(request, context)
        except Exception as error:
            await _abort(context, error, method)

    return answer


def _stream(method: str, behavior: Stream) -> Callable[..., AsyncIterator[Any]]:
    async def answer(request: Any, context: Context) -> AsyncIterator[Any]:
        try:
            async with contextlib.aclosing(behavior(request, context)) as responses:
                async for response in responses:
                    yield response
        except Exception as error:
            await _abort(context, error, method)

    return answer


async def _abort(context: Context, error: Exception, method: str) -> NoReturn:
    if isinstance(error, grpc.aio.AbortError):
        raise error
    if not isinstance(error, StoreError):
        log.exception("request_failed", method=method)
    status: Any = rpc_status.to_status(rpc_status_of(error))
    await context.abort(status.code, status.details, status.trailing_metadata)
    raise AssertionError("abort raises")
