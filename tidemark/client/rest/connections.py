"""Kept-alive HTTP connections to one service, for lookups and for answers of megabytes.

For large answers they are several times as fast as httpx, which reads in small pieces.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple, NoReturn
from urllib.parse import urlencode, urlsplit

from tidemark.client.errors.address_faults import speaks_grpc
from tidemark.client.own_process import OwnProcess
from tidemark.client.rest.http_connection import HttpConnection, HttpFaultError, HttpResponse
from tidemark.client.tracing.spans import current_carrier
from tidemark.errors import QueryUnreachableError, TlsFailedError
from tidemark.tls.credentials import Credentials
from tidemark.tls.fault import fault_of, look

Parameters = Mapping[str, object]
_MOST_KEPT = 16
_LONGEST_IDLE_S = 3.0  # less than the 5 s after which the service closes idle connections
_CLOSED_AS_IDLE = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError)


class _Idle(NamedTuple):
    connection: HttpConnection
    since: float  # time.monotonic()


class Answer(NamedTuple):
    """A complete answer."""

    status: int
    headers: Mapping[str, str]  # names as in Content-Type
    body: memoryview

    @property
    def is_error(self) -> bool:
        """Return True for a status of 400 or higher."""
        return self.status >= 400


class Connections:
    """A pool of idle connections. Thread-safe.

    url          http://host:port or https://host:port, optionally with a path prefix
    timeout_s    limit for each wait on the network
    kept         maximum number of idle connections
    credentials  default: from the environment. Raises TlsFilesError, TokenFileError for unusable files
    """

    def __init__(
        self, url: str, *, timeout_s: float, kept: int = _MOST_KEPT, credentials: Credentials | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"the query service's address {url!r} is not an http or https address: write http://host:port, as in "
                "http://127.0.0.1:8080 (TIDEMARK_QUERY_URL)"
            )
        self.url = url
        self._timeout_s = timeout_s
        self._credentials = credentials or Credentials.from_environment()
        self._context = self._credentials.context() if parts.scheme == "https" else None
        self._has_answered = False
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._kept = kept
        self._process = OwnProcess("connection to a query service")
        self._idle: deque[_Idle] = deque(maxlen=kept)

    def get(self, path: str, parameters: Parameters, accept: str) -> Answer:
        """Return the answer to a GET; raise QueryUnreachableError without one."""
        return self.ask(path, parameters, accept).answer()

    def ask(self, path: str, parameters: Parameters, accept: str, *, is_repeatable: bool = True) -> SentRequest:
        """Send a GET without waiting for its answer. parameters: None is left out, a list becomes repeated parameters.

        is_repeatable: False for a caller that repeats a failed request itself and must not wait for a second answer
        """
        given = {name: value for name, value in parameters.items() if value is not None}
        target = f"{self._prefix}{path}?{urlencode(given, doseq=True)}" if given else self._prefix + path
        headers = {"Accept": accept, **self._shown(), **current_carrier()}
        return SentRequest(self, "GET", target, headers, is_repeatable=is_repeatable)

    def send(
        self, method: str, path: str, body: bytes | None, accept: str, *, is_repeatable: bool | None = None
    ) -> SentRequest:
        """Send a request with a JSON *body* or without one; do not wait for its answer.

        is_repeatable: True if sending it twice has the effect of sending it once; default: every method but POST
        """
        content_type = {} if body is None else {"Content-Type": "application/json"}
        headers = {"Accept": accept, **content_type, **self._shown(), **current_carrier()}
        repeatable = method != "POST" if is_repeatable is None else is_repeatable
        return SentRequest(self, method, self._prefix + path, headers, body, is_repeatable=repeatable)

    def _shown(self) -> dict[str, str]:
        authorization = self._credentials.authorization()
        return {} if authorization is None else {"Authorization": authorization}

    def take(self, *, is_repeatable: bool) -> tuple[HttpConnection, bool]:
        """Return an idle connection that its server has not closed, or a new one, and whether it was used before.

        A request that must not be sent twice gets no connection that its server may be about to close as idle.

        raises ForkedProcessError in a process that was forked from the one that created these connections
        """
        self._process.require()
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


class SentRequest:
    """A request that was sent. Read its answer, or close it.

    A server may close an idle connection at the moment of its next use. The request is then sent again on a new
    connection, unless repeating it might have a second effect.
    """

    def __init__(
        self,
        connections: Connections,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        is_repeatable: bool = True,
    ) -> None:
        self._connections = connections
        self._request = (method, target, body, dict(headers))
        self._response: HttpResponse | None = None
        self._connection, is_used = connections.take(is_repeatable=is_repeatable)
        self._may_repeat = is_used and is_repeatable
        try:
            self._connection.request(*self._request)
        except _CLOSED_AS_IDLE as error:
            self._repeat(error)
        except (OSError, HttpFaultError) as error:
            self._fail(error)
        except ValueError:
            self._connection.close()
            raise

    def fileno(self) -> int:
        """Return the socket's file descriptor, which becomes readable when the answer arrives; -1 once it is closed."""
        return -1 if self._connection.sock is None else self._connection.sock.fileno()

    def response(self) -> HttpResponse:
        """Wait for the status and headers, and return them."""
        if self._response is None:
            try:
                self._response = self._connection.response()
            except _CLOSED_AS_IDLE as error:
                self._repeat(error)
                with self._unavailable():
                    self._response = self._connection.response()
            except (OSError, HttpFaultError) as error:
                self._fail(error)
        return self._response

    def _repeat(self, error: OSError | HttpFaultError) -> None:
        """Send the request on a new connection. Fail if the connection was new, or the request is not repeatable."""
        if not self._may_repeat:
            self._fail(error)
        self._may_repeat = False
        self._connection.close()
        self._connection = self._connections.new()
        with self._unavailable():
            self._connection.request(*self._request)

    def _fail(self, error: OSError | HttpFaultError) -> NoReturn:
        self._connection.close()
        raise self._connections.failure(error) from error

    def answer(self) -> Answer:
        """Read and return the complete answer."""
        response = self.response()
        with self._unavailable():
            body = response.read()
        if response.will_close:
            self._connection.close()
        else:
            self._connections.give_back(self._connection)
        return Answer(response.status, response.headers, body)

    def close(self) -> None:
        """Discard the answer."""
        self._connection.close()

    @contextlib.contextmanager
    def _unavailable(self) -> Iterator[None]:
        """Raise QueryUnreachableError or TlsFailedError for exceptions of the connection."""
        try:
            yield
        except (OSError, HttpFaultError) as error:
            self._fail(error)


def _has_something_to_read(sock: socket.socket) -> bool:
    """Return True if an idle connection is unusable: its server has closed it or has sent unexpected data."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
