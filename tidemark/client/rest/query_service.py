"""QueryService: the idle connections to one query service, and the reason why it does not answer."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections import deque
from typing import NamedTuple
from urllib.parse import urlsplit

from tidemark.client.errors.address_faults import speaks_grpc
from tidemark.client.rest.http_connection import HttpConnection, HttpFaultError
from tidemark.errors import QueryUnreachableError, TlsFailedError
from tidemark.tls.credentials import Credentials
from tidemark.tls.fault import fault_of, look

_LONGEST_IDLE_S = 3.0  # less than the 5 s after which the service closes idle connections


class _Idle(NamedTuple):
    connection: HttpConnection
    since: float  # time.monotonic()


class QueryService:
    """One query service, with its idle connections. Thread-safe.

    raises ValueError for *url*, TlsFilesError for unusable files
    """

    def __init__(self, url: str, *, timeout_s: float, kept: int, credentials: Credentials) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"the query service's address {url!r} is not an http or https address: write http://host:port, as in "
                "http://127.0.0.1:8080 (TIDEMARK_QUERY_URL)"
            )
        self.url = url
        self.prefix = parts.path.rstrip("/")
        self._timeout_s = timeout_s
        self._credentials = credentials
        self._context = credentials.context() if parts.scheme == "https" else None
        self._has_answered = False
        self._host, self._port = parts.hostname, parts.port
        self._kept = kept
        self._idle: deque[_Idle] = deque(maxlen=kept)

    def take(self, *, is_repeatable: bool) -> tuple[HttpConnection, bool]:
        """Return an idle connection that its server has not closed, or a new one, and whether it was used before.

        A request that must not be sent twice gets no connection that its server may be about to close as idle.
        """
        with contextlib.suppress(IndexError):
            while True:
                idle = self._idle.pop()
                is_old = not is_repeatable and time.monotonic() - idle.since > _LONGEST_IDLE_S
                sock = idle.connection.sock
                if sock is not None and not is_old and not _has_something_to_read(sock):
                    return idle.connection, True
                idle.connection.close()
        return self.new(), False

    def new(self) -> HttpConnection:
        """Return a new connection."""
        return HttpConnection(self._host, self._port, timeout_s=self._timeout_s, context=self._context)

    def give_back(self, connection: HttpConnection) -> None:
        """Keep *connection*, whose last answer was read to its end."""
        self._has_answered = True
        if len(self._idle) < self._kept:
            self._idle.append(_Idle(connection, time.monotonic()))
        else:
            connection.close()

    def failure(self, error: OSError | HttpFaultError) -> QueryUnreachableError | TlsFailedError:
        """Return the exception to raise for *error*. If the service never answered, first look for a TLS fault."""
        fault = fault_of(error)
        if fault is None and not self._has_answered and not isinstance(error, ConnectionRefusedError | TimeoutError):
            is_tls = self._context is not None
            port = self._port or (443 if is_tls else 80)
            fault = look(self._host, port, credentials=self._credentials, is_tls=is_tls)
        if fault is None and self._is_writer(error):
            text = (
                f"{self.url} was not reached: it speaks gRPC, so it is a writer's port; the query service has its own "
                "http address, as in http://127.0.0.1:8080 (TIDEMARK_QUERY_URL)"
            )
            return QueryUnreachableError(text, url=self.url)
        if fault is None:
            text = f"{self.url} does not answer: {error or type(error).__name__}"
            return QueryUnreachableError(text, url=self.url)
        hint = "" if self._context is not None else ": write https://"
        return TlsFailedError(f"{self.url} was not reached: {fault}{hint}", address=self.url)

    def _is_writer(self, error: OSError | HttpFaultError) -> bool:
        """Return True if a service that never answered HTTP/1 speaks gRPC."""
        if self._has_answered or not isinstance(error, HttpFaultError | ConnectionResetError):
            return False
        return speaks_grpc(self._host, self._port or 80)

    def close(self) -> None:
        """Close the idle connections."""
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().connection.close()


def _has_something_to_read(sock: socket.socket) -> bool:
    """Return True if an idle connection is unusable: its server has closed it or has sent unexpected data."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
