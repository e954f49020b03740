"""Kept-alive HTTP connections to one service, for lookups and for answers of megabytes.

For large answers they are several times as fast as httpx, which reads in small pieces.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple, NoReturn
from urllib.parse import urlencode

from tidemark.client.errors.address_faults import members_of, stores_of
from tidemark.client.own_process import OwnProcess
from tidemark.client.rest.http_connection import HttpFaultError, HttpResponse
from tidemark.client.rest.query_service import QueryService
from tidemark.client.tracing.spans import current_carrier
from tidemark.tls.credentials import Credentials

Parameters = Mapping[str, object]
_MOST_KEPT = 16
_NOT_LEADER = 421
_ELECTION_S = 15.0  # longest wait for a group that has no writer
_ELECTION_PAUSE_S = 0.2
_CLOSED_AS_IDLE = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError)


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
    """Pools of idle connections to a query service, or to those of a group's members. Thread-safe.

    One of the services is used until it does not answer, or refuses with NOT_LEADER what only the service beside the
    group's writer can do; then the next one.

    url          http://host:port or https://host:port, optionally with a path prefix; of each service, separated by |
    timeout_s    limit for each wait on the network
    kept         maximum number of idle connections
    credentials  default: from the environment

    Raises ValueError for an unusable url, or for those of several stores; TlsFilesError, TokenFileError for unusable
    files.
    """

    def __init__(
        self, url: str, *, timeout_s: float, kept: int = _MOST_KEPT, credentials: Credentials | None = None
    ) -> None:
        stores = stores_of(url)
        if len(stores) > 1:
            raise ValueError(f"{url!r} names {len(stores)} stores: give the url of one, as {stores[0]}")
        self.url = url
        self._credentials = credentials or Credentials.from_environment()
        self._services = [
            QueryService(one, timeout_s=timeout_s, kept=kept, credentials=self._credentials) for one in members_of(url)
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

    def leave(self, service: QueryService) -> None:
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
                if response.status != _NOT_LEADER or not self._asks_another():
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

    def _asks_another(self) -> bool:
        """Ask the next service, because a replica has refused. Return False if the refusal is the answer.

        While the group has no writer, it is asked again after a pause.
        """
        if not self._services_left:
            if self._connections.count == 1 or time.monotonic() > self._began + _ELECTION_S:
                return False
            time.sleep(_ELECTION_PAUSE_S)
            self._services_left = self._connections.count
        self._ask_next()
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
        """Read and return the complete answer.

        An answer that breaks off is asked of the next service, unless `response` has returned its head before: the
        other service's head may be another one.
        """
        is_head_known = self._response is not None
        while True:
            response = self.response()
            try:
                body = response.read()
            except (OSError, HttpFaultError) as error:
                if is_head_known:
                    self._connections.leave(self._service)
                    self._fail(error)
                self._response = None
                self._go_elsewhere(error)
            else:
                return self._whole(response, body)

    def _whole(self, response: HttpResponse, body: memoryview) -> Answer:
        if response.will_close:
            self._connection.close()
        else:
            self._service.give_back(self._connection)
        return Answer(response.status, response.headers, body)

    def close(self) -> None:
        """Discard the answer."""
        self._connection.close()
