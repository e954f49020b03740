"""Wraps the handlers of gRPC methods, for interceptors."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

Context = grpc.aio.ServicerContext[Any, Any]
Unary = Callable[[Any, Context], Awaitable[Any]]
Stream = Callable[[Any, Context], AsyncGenerator[Any, None]]  # Any: the request, or an iterator of them
Continuation = Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any] | None"]]

_MAKERS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}
_OURS = "/tidemark."


def is_ours(method: str) -> bool:
    """Return True for a method of Tidemark's API; health and reflection are gRPC's own."""
    return method.startswith(_OURS)


def around(
    handler: Any,
    unary: Callable[[Unary], Unary],
    stream: Callable[[Stream], Callable[..., AsyncIterator[Any]]],
    *,
    decodes: bool = True,
) -> grpc.RpcMethodHandler[Any, Any]:
    """Return *handler* with its behavior wrapped by *unary* or *stream*, depending on its response.

    decodes: False passes a single request to the wrapper as bytes. Raises KeyError for a stream-unary handler.
    """
    make = _MAKERS[handler.request_streaming, handler.response_streaming]
    behavior = handler.unary_unary or handler.unary_stream or handler.stream_stream
    return make(
        stream(behavior) if handler.response_streaming else unary(behavior),
        request_deserializer=handler.request_deserializer if decodes or handler.request_streaming else None,
        response_serializer=handler.response_serializer,
    )
