"""Kept-alive HTTP connections to one service, for large answers: http.client, read into memory that is used again.

For answers of megabytes that is several times as fast as httpx, which reads in small pieces.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections import deque
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection, RemoteDisconnected
from typing import NamedTuple, NoReturn
from urllib.parse import urlencode, urlsplit

from tidemark.client.errors.address_faults import speaks_grpc
from tidemark.client.own_process import OwnProcess
from tidemark.client.tracing.spans import current_carrier
from tidemark.errors import QueryUnreachableError, TlsFailedError
from tidemark.tls.credentials import Credentials
from tidemark.tls.fault import fault_of, look

Parameters = Mapping[str, object]
_MOST_KEPT = 16
_LONGEST_IDLE_S = 3.0  # the service closes idle connections after 5 s
_CLOSED_AS_IDLE = (RemoteDisconnected, ConnectionResetError, BrokenPipeError, ConnectionAbortedError)
_WORTH_A_LEASE = 128 << 10  # bytes of an answer; below it memory costs nothing
_PIECE = 256 << 10
_WORTH_WAITING_FOR = 4 * _PIECE


class _Idle(NamedTuple):
    connection: HTTPConnection
    since: float  # time.monotonic()


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    headers: HTTPMessage | Mapping[str, str]
    body: memoryview

    @property
    def is_error(self) -> bool:
        """Whether it is no success."""
        return self.status >= 400


class Connections:
    """Connections that nobody uses now, as many as were used at once. Safe for several threads.

    url          http://host:port, or https, with or without a path before the service's own
    timeout_s    for each wait on the network
    kept         connections that stay open while nobody uses them
    credentials  default, as the environment says. TlsFilesError, TokenFileError for files that cannot be used
    """

    def __init__(
        self, url: str, *, timeout_s: float, kept: int = _MOST_KEPT, credentials: Credentials | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"the query service's address {url!r} is no http or https address: write http://host:port, as in "
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
        """The answer to a GET; QueryUnreachableError when there is none."""
        return self.ask(path, parameters, accept).answer()

    def ask(self, path: str, parameters: Parameters, accept: str, *, is_repeatable: bool = True) -> Asked:
        """Send a GET, and do not wait for its answer. parameters: None is left out, a list is repeated.

        is_repeatable: False for a caller that repeats a failed request itself and must not wait for a second answer
        """
        given = {name: value for name, value in parameters.items() if value is not None}
        target = f"{self._prefix}{path}?{urlencode(given, doseq=True)}" if given else self._prefix + path
        headers = {"Accept": accept, **self._shown(), **current_carrier()}
        return Asked(self, "GET", target, headers, is_repeatable=is_repeatable)

    def send(
        self, method: str, path: str, body: bytes | None, accept: str, *, is_repeatable: bool | None = None
    ) -> Asked:
        """Send a request, with a JSON *body* or none, and do not wait for its answer.

        is_repeatable: whether to send it twice does its work once; default: every method but POST
        """
        content_type = {} if body is None else {"Content-Type": "application/json"}
        headers = {"Accept": accept, **content_type, **self._shown(), **current_carrier()}
        repeatable = method != "POST" if is_repeatable is None else is_repeatable
        return Asked(self, method, self._prefix + path, headers, body, is_repeatable=repeatable)

    def _shown(self) -> dict[str, str]:
        authorization = self._credentials.authorization()
        return {} if authorization is None else {"Authorization": authorization}

    def take(self, *, is_repeatable: bool) -> tuple[HTTPConnection, bool]:
        """Return an idle connection that its server has not closed, or a new one, and whether it was used before.

        A request that must not be sent twice gets no connection that its server may be about to close as idle.

        raises ForkedProcessError in a process that was forked from the one that made these connections
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

    def new(self) -> HTTPConnection:
        """Return a new connection."""
        if self._context is None:
            return HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        return HTTPSConnection(self._host, self._port, timeout=self._timeout_s, context=self._context)

    def give_back(self, connection: HTTPConnection) -> None:
        """Keep *connection*, whose last answer was read to its end."""
        self._has_answered = True
        if len(self._idle) < self._kept:
            self._idle.append(_Idle(connection, time.monotonic()))
        else:
            connection.close()

    def failure(self, error: OSError | HTTPException) -> QueryUnreachableError | TlsFailedError:
        """What to raise for *error*: where the service never answered, also what TLS has to do with it."""
        fault = fault_of(error)
        if fault is None and not self._has_answered and not isinstance(error, ConnectionRefusedError | TimeoutError):
            is_tls = self._context is not None
            port = self._port or (443 if is_tls else 80)
            fault = look(self._host, port, credentials=self._credentials, is_tls=is_tls)
        if fault is None and self._is_writer(error):
            text = (
                f"{self.url} was not reached: it speaks gRPC, so it is a writer's port; the query service has an http "
                "address of its own, as in http://127.0.0.1:8080 (TIDEMARK_QUERY_URL)"
            )
            return QueryUnreachableError(text, url=self.url)
        if fault is None:
            text = f"{self.url} does not answer: {error or type(error).__name__}"
            return QueryUnreachableError(text, url=self.url)
        hint = "" if self._context is not None else ": write https://"
        return TlsFailedError(f"{self.url} was not reached: {fault}{hint}", address=self.url)

    def _is_writer(self, error: OSError | HTTPException) -> bool:
        """Return True if a service that never answered HTTP/1 speaks gRPC."""
        if self._has_answered or not isinstance(error, HTTPException | ConnectionResetError):
            return False
        return speaks_grpc(self._host, self._port or 80)

    def close(self) -> None:
        """Close those that nobody uses now."""
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().connection.close()


class Asked:
    """A request that was sent. Read its answer, or close it.

    A server may close an idle connection at the moment of its next use. Then the request goes once more on a new
    connection, unless repeating it may do its work twice.
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
        self._response: HTTPResponse | None = None
        self._connection, is_used = connections.take(is_repeatable=is_repeatable)
        self._may_repeat = is_used and is_repeatable
        try:
            self._connection.request(*self._request)
        except _CLOSED_AS_IDLE as error:
            self._repeat(error)
        except (OSError, HTTPException) as error:
            self._fail(error)

    def fileno(self) -> int:
        """Its socket, which becomes readable when the answer begins. -1 once it is closed."""
        return -1 if self._connection.sock is None else self._connection.sock.fileno()

    def response(self) -> HTTPResponse:
        """Its status and headers; waits for them."""
        if self._response is None:
            try:
                self._response = self._connection.getresponse()
            except _CLOSED_AS_IDLE as error:
                self._repeat(error)
                with self._unavailable():
                    self._response = self._connection.getresponse()
            except (OSError, HTTPException) as error:
                self._fail(error)
        return self._response

    def _repeat(self, error: OSError | HTTPException) -> None:
        """Send the request on a new connection; fail where this one was new, or may have done its work."""
        if not self._may_repeat:
            self._fail(error)
        self._may_repeat = False
        self._connection.close()
        self._connection = self._connections.new()
        with self._unavailable():
            self._connection.request(*self._request)

    def _fail(self, error: OSError | HTTPException) -> NoReturn:
        self._connection.close()
        raise self._connections.failure(error) from error

    def answer(self) -> Answer:
        """All of it."""
        response = self.response()
        with self._unavailable():
            body = _read(response, self._connection.sock)
        if response.will_close:
            self._connection.close()
        else:
            self._connections.give_back(self._connection)
        return Answer(response.status, response.headers, body)

    def close(self) -> None:
        """Give up on the answer."""
        self._connection.close()

    @contextlib.contextmanager
    def _unavailable(self) -> Iterator[None]:
        """Raise QueryUnreachableError or TlsFailedError for exceptions of http.client and sockets."""
        try:
            yield
        except (OSError, HTTPException) as error:
            self._fail(error)


def _read(response: HTTPResponse, sock: socket.socket | None) -> memoryview:
    """The body; in memory that is used again when nobody refers to it any more, where its length is told."""
    if response.length is None:
        return memoryview(response.read())
    body = _room(response.length)
    at = 0
    if sock is not None and len(body) >= _WORTH_WAITING_FOR:
        with _woken_for(_PIECE, sock):
            while len(body) - at >= 2 * _PIECE:  # so that there is always a piece to come
                at += _read_into(body, at, _PIECE, response)
    while at < len(body):
        at += _read_into(body, at, len(body), response)
    response.close()
    return body


def _read_into(body: memoryview, at: int, most: int, response: HTTPResponse) -> int:
    got = response.readinto(body[at : at + most])
    if got == 0:
        raise HTTPException(f"the answer ended after {at} of {len(body)} bytes")
    return got


@contextlib.contextmanager
def _woken_for(size: int, sock: socket.socket) -> Iterator[None]:
    """Who waits for *sock* is woken once so many bytes have come; for each packet it would cost more than the copy."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
    try:
        yield
    finally:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


def _room(size: int) -> memoryview:
    if size < _WORTH_A_LEASE:
        return memoryview(bytearray(size))
    try:
        from tidemark.read.buffers import POOL
    except ImportError:  # a client without numpy
        return memoryview(bytearray(size))
    return POOL.lend(size).data


def _has_something_to_read(sock: socket.socket) -> bool:
    """Whether an idle connection is of no use any more: its server has closed it, or says something unasked."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
