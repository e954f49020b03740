"""NotLeaderInterceptor: a replica refuses what only a writer can do, with the writer's address."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, NoReturn

import grpc

from .wrapped_handlers import Context, Continuation, around


class NotLeaderInterceptor(grpc.aio.ServerInterceptor):
    """Refuses all methods of *services*, by their full names. refuse: raises NotLeaderError."""

    def __init__(self, services: tuple[str, ...], refuse: Callable[[], NoReturn]) -> None:
        self._prefixes = tuple(f"/{service}/" for service in services)
        self._refuse = refuse

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler: Any = await continuation(handler_call_details)
        if handler is None or not handler_call_details.method.startswith(self._prefixes):
            return handler  # type: ignore[no-any-return]
        return around(handler, lambda _: self._unary, lambda _: self._stream)

    async def _unary(self, request: Any, context: Context) -> Any:
        self._refuse()

    async def _stream(self, request: Any, context: Context) -> AsyncIterator[Any]:
        self._refuse()
        yield
