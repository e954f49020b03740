"""Bearer: a gRPC interceptor that adds the client's token to each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import grpc

from tidemark.tls.credentials import Credentials


class _CallDetails(NamedTuple):
    """The call details that gRPC passes on."""

    method: str
    timeout: float | None
    metadata: Any
    credentials: Any
    wait_for_ready: Any
    compression: Any


class Bearer(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor, grpc.StreamStreamClientInterceptor):
    """Adds the token of *credentials*. A call raises TokenFileError for a file without a token."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def intercept_unary_unary(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        """Add the token to a unary call."""
        return continuation(self._shown(details), request)

    def intercept_unary_stream(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        """Add the token to a call with a stream of answers."""
        return continuation(self._shown(details), request)

    def intercept_stream_stream(self, continuation: Callable[..., Any], details: Any, requests: Any) -> Any:
        """Add the token to a call with streams of requests and answers."""
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
