"""Kept-alive HTTP connections to one service, for lookups and for answers of megabytes.

For large answers they are several times as fast as httpx, which reads in small pieces.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple, NoReturn
from urllib.parse import urlencode, urlsplit

from tidemark.client.errors.address_faults import members_of, speaks_grpc
from tidemark.client.own_process import OwnProcess
from tidemark.client.rest.http_connection import HttpConnection, HttpFaultError, HttpResponse
from tidemark.client.tracing.spans import current_carrier
from tidemark.errors import QueryUnreachableError, TlsFailedError
from tidemark.tls.credentials import Credentials
from tidemark.tls.fault import fault_of, look

Parameters = Mapping[str, object]
_MOST_KEPT = 16
_NOT_LEADER = 421
_ELECTION_S = 15.0  # longest wait for a group that has no writer
_ELECTION_PAUSE_S = 0.2
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


class _Service:
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


class Connections:
    """Pools of idle connections to a query service, or to those of a group's members. Thread-safe.

    One of the services is used until it does not answer, or refuses with NOT_LEADER what only the service beside the
    group's writer can do; then the next one.

    url          http://host:port or https://host:port, optionally with a path prefix; of each service, separated by |
    timeout_s    limit for each wait on the network
    kept         maximum number of idle connections
    credentials  default: from the environment. Raises TlsFilesError, TokenFileError for unusable files
    """

    def __init__(
        self, url: str, *, timeout_s: float, kept: int = _MOST_KEPT, credentials: Credentials | None = None
    ) -> None:
        self.url = url
        self._credentials = credentials or Credentials.from_environment()
        self._services = [
            _Service(one, timeout_s=timeout_s, kept=kept, credentials=self._credentials) for one in members_of(url)
        ]
        self.service = self._services[0]
        self._process = OwnProcess("connection to a query service")

    def get(self, path: str, parameters: Parameters, accept: str) -> Answer:
        """Return the answer to a GET; raise QueryUnreachableError without one."""
        return self.ask(path, parameters, accept).answer()

    def ask(self, path: str, parameters: Parameters, accept: str, *, is_repeatable: bool = True) -> SentRequest:
        """Send a GET without waiting for its answer. parameters: None is left out, a list becomes repeated parameters.

        is_repeatable: False for a caller that repeats a failed request itself and must not wait for a second answer
        """
        given = {name: value for name, value in parameters.items() if value is not None}
        target = f"{path}?{urlencode(given, doseq=True)}" if given else path
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
        return SentRequest(self, method, path, headers, body, is_repeatable=repeatable)

    def _shown(self) -> dict[str, str]:
        authorization = self._credentials.authorization()
        return {} if authorization is None else {"Authorization": authorization}

    def require_process(self) -> None:
        """Raise ForkedProcessError in a process that was forked from the one that created these connections."""
        self._process.require()

    @property
    def count(self) -> int:
        """The number of services."""
        return len(self._services)

    def leave(self, service: _Service) -> None:
        """Use the next service, unless *service* was left before."""
        if self.service is service:
            self.service = self._services[(self._services.index(service) + 1) % len(self._services)]

    def close(self) -> None:
        """Close the idle connections."""
        for service in self._services:
            service.close()


class SentRequest:
    """A request that was sent. Read its answer, or close it.

    A server may close an idle connection at the moment of its next use. The request is then sent again on a new
    connection, and if that does not help, to the group's other services, unless repeating it might have a second
    effect. A refusal with NOT_LEADER has none.
    """

    def __init__(
        self,
        connections: Connections,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        is_repeatable: bool = True,
    ) -> None:
        connections.require_process()
        self._connections = connections
        self._request = (method, path, body, dict(headers))
        self._response: HttpResponse | None = None
        self._is_repeatable = is_repeatable
        self._services_left = connections.count - 1  # that have not refused or failed
        self._began = time.monotonic()
        self._begin()

    def _begin(self) -> None:
        """Send the request to the present service."""
        self._service = self._connections.service
        self._connection, is_used = self._service.take(is_repeatable=self._is_repeatable)
        self._may_repeat = is_used and self._is_repeatable
        try:
            self._send()
        except _CLOSED_AS_IDLE as error:
            self._repeat(error)
        except (OSError, HttpFaultError) as error:
            self._go_elsewhere(error)
        except ValueError:
            self._connection.close()
            raise

    def _send(self) -> None:
        method, path, body, headers = self._request
        self._connection.request(method, self._service.prefix + path, body, headers)

    def fileno(self) -> int:
        """Return the socket's file descriptor, which becomes readable when the answer arrives; -1 once it is closed."""
        return -1 if self._connection.sock is None else self._connection.sock.fileno()

    def response(self) -> HttpResponse:
        """Wait for the status and headers, and return them."""
        while self._response is None:
            try:
                response = self._connection.response()
            except _CLOSED_AS_IDLE as error:
                self._repeat(error)
            except (OSError, HttpFaultError) as error:
                self._go_elsewhere(error)
            else:
                if response.status == _NOT_LEADER and self._may_ask_again():
                    self._ask_next()
                else:
                    self._response = response
        return self._response

    def _repeat(self, error: OSError | HttpFaultError) -> None:
        """Send the request on a new connection, if the present one was used before and the request is repeatable."""
        if not self._may_repeat:
            self._go_elsewhere(error)
            return
        self._may_repeat = False
        self._connection.close()
        self._connection = self._service.new()
        try:
            self._send()
        except (OSError, HttpFaultError) as failure:
            self._go_elsewhere(failure)

    def _go_elsewhere(self, error: OSError | HttpFaultError) -> None:
        """Send the request to the next service; fail without one. The next request goes there in any case."""
        if not self._services_left or not self._is_repeatable:
            self._connections.leave(self._service)
            self._fail(error)
        self._ask_next()

    def _may_ask_again(self) -> bool:
        """Return True if a refusal of a replica need not be the answer; wait if the group is electing its writer."""
        if self._services_left:
            return True
        if self._connections.count == 1 or time.monotonic() > self._began + _ELECTION_S:
            return False
        time.sleep(_ELECTION_PAUSE_S)
        self._services_left = self._connections.count
        return True

    def _ask_next(self) -> None:
        self._services_left -= 1
        self._connection.close()
        self._connections.leave(self._service)
        self._begin()

    def _fail(self, error: OSError | HttpFaultError) -> NoReturn:
        self._connection.close()
        raise self._service.failure(error) from error

    def answer(self) -> Answer:
        """Read and return the complete answer."""
        response = self.response()
        try:
            body = response.read()
        except (OSError, HttpFaultError) as error:
            self._connections.leave(self._service)
            self._fail(error)
        if response.will_close:
            self._connection.close()
        else:
            self._service.give_back(self._connection)
        return Answer(response.status, response.headers, body)

    def close(self) -> None:
        """Discard the answer."""
        self._connection.close()


def _has_something_to_read(sock: socket.socket) -> bool:
    """Return True if an idle connection is unusable: its server has closed it or has sent unexpected data."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
