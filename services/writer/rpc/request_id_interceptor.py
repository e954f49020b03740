"""RequestIdInterceptor: gives each call an id, the caller's own or a new one, for log lines and the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from tidemark.tracing.request_id import HEADER, begin_request, current_request_id

_Continuation = Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any] | None"]]


class RequestIdInterceptor(grpc.aio.ServerInterceptor):
    """The first interceptor, so that log lines of the others have the id, too. All of them run in the call's task."""

    async def intercept_service(
        self, continuation: _Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        begin_request(_given(handler_call_details))
        return await continuation(handler_call_details)


def _given(details: grpc.HandlerCallDetails) -> str | None:
    for name, value in details.invocation_metadata or ():
        if name == HEADER:
            return value if isinstance(value, str) else None
    return None


def request_id_metadata() -> tuple[tuple[str, str], ...]:
    """Return the trailing metadata with the request id; empty outside a call."""
    request_id = current_request_id()
    return () if request_id is None else ((HEADER, request_id),)
