"""Bearer: a gRPC channel's interceptor that shows the client's token with each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import grpc

from tidemark.tls.credentials import Credentials


class _CallDetails(NamedTuple):
    """As gRPC asks for them."""

    method: str
    timeout: float | None
    metadata: Any
    credentials: Any
    wait_for_ready: Any
    compression: Any


class Bearer(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor, grpc.StreamStreamClientInterceptor):
    """tls: where the token is. TokenFileError from the call itself, for a file that holds none."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def intercept_unary_unary(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        """As gRPC asks for it."""
        return continuation(self._shown(details), request)

    def intercept_unary_stream(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        """As gRPC asks for it."""
        return continuation(self._shown(details), request)

    def intercept_stream_stream(self, continuation: Callable[..., Any], details: Any, requests: Any) -> Any:
        """As gRPC asks for it."""
        return continuation(self._shown(details), requests)

    def _shown(self, details: Any) -> _CallDetails:
        metadata = [*(details.metadata or ()), ("authorization", self._credentials.authorization())]
        return _CallDetails(
            details.method,
            details.timeout,
            metadata,
            details.credentials,
            details.wait_for_ready,
            details.compression,
        )
