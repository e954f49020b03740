"""EtcdGateway: calls of etcd's API, version 3, as JSON over HTTP (https://etcd.io/docs/latest/dev-guide/api_grpc_gateway)."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson

from tidemark.errors import GroupStoreUnavailableError

_UNAUTHENTICATED = 16  # gRPC's code, also of a token that has run out
_INVALID = frozenset({400, 404})


class EtcdLogin(NamedTuple):
    """User and password of etcd. password_file: its first line is the password."""

    user: str
    password_file: Path


class _RefusedError(Exception):
    """etcd has refused a call. code: gRPC's."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class EtcdGateway:
    """The members of one etcd. Thread-safe.

    urls       http://host:port or https://host:port of each
    timeout_s  longest wait for one member, after which the next one is asked
    context    of TLS; None: the default CAs
    login      None: no authentication
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        timeout_s: float,
        context: ssl.SSLContext | None = None,
        login: EtcdLogin | None = None,
    ) -> None:
        self._urls = list(urls)  # the one that answered last is the first
        self._login = login
        self._token: str | None = None
        self._ordering = threading.Lock()
        verify: ssl.SSLContext | bool = True if context is None else context
        self._client = httpx.Client(timeout=timeout_s, verify=verify, trust_env=False)

    def call(self, path: str, request: Mapping[str, Any]) -> Any:
        """Return the answer to a call, for example of path /v3/kv/txn.

        Raises:
            GroupStoreUnavailableError: no member answers, so that the outcome of a change is unknown; or etcd refuses.
        """
        fault = ""
        for url in tuple(self._urls):
            try:
                answer = self._authenticated(url, path, request)
            except _RefusedError as error:
                raise GroupStoreUnavailableError(f"etcd at {url} has refused {path}: {error}", url=url) from error
            except (httpx.HTTPError, ValueError) as error:
                fault = f"{url}: {error or type(error).__name__}"
                continue
            with self._ordering:
                if self._urls[0] != url:
                    self._urls.sort(key=lambda one: one != url)
            return answer
        raise GroupStoreUnavailableError(
            f"no member of etcd answers ({', '.join(sorted(self._urls))}): the last fault is {fault}", url=self._urls[0]
        )

    def _authenticated(self, url: str, path: str, request: Mapping[str, Any]) -> Any:
        if self._login is None:
            return self._post(url, path, request, None)
        if self._token is not None:
            try:
                return self._post(url, path, request, self._token)
            except _RefusedError as error:
                if error.code != _UNAUTHENTICATED:
                    raise
        try:
            password = self._login.password_file.read_text().partition("\n")[0]
        except (OSError, UnicodeDecodeError) as error:
            raise GroupStoreUnavailableError(f"etcd's password cannot be read: {error}", url=url) from error
        credentials = {"name": self._login.user, "password": password}
        self._token = str(self._post(url, "/v3/auth/authenticate", credentials, None)["token"])
        return self._post(url, path, request, self._token)

    def _post(self, url: str, path: str, request: Mapping[str, Any], token: str | None) -> Any:
        """Raises httpx.HTTPError or ValueError if this member is no use, _RefusedError if no member would be."""
        headers = {} if token is None else {"Authorization": token}
        response = self._client.post(url + path, content=orjson.dumps(request), headers=headers)
        if response.status_code == httpx.codes.OK:
            return orjson.loads(response.content)
        reason, code = _fault(response)
        if code == _UNAUTHENTICATED or response.status_code in _INVALID:
            raise _RefusedError(reason, code)
        raise ValueError(f"status {response.status_code}: {reason}")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _fault(response: httpx.Response) -> tuple[str, int]:
    try:
        content = orjson.loads(response.content)
        return str(content.get("error") or content.get("message")), int(content.get("code", 0))
    except (ValueError, AttributeError, TypeError):
        return response.text[:200], 0


def encoded(data: bytes) -> str:
    """Return bytes as the gateway writes them."""
    return base64.b64encode(data).decode()


def decoded(text: str) -> bytes:
    """Return the bytes in *text* of the gateway."""
    return base64.b64decode(text)
