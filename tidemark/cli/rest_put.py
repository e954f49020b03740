"""PUT to the query service: the one thing that this command asks of it and `Query` does not have."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any, cast

import orjson

from tidemark.errors import StoreError, UnavailableError
from tidemark.status import error_of

_TIMEOUT_S = 30.0


def put_json(url: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a PUT; the StoreError that a problem tells, UnavailableError when nobody answers."""
    request = urllib.request.Request(  # noqa: S310 - Query has checked that url is http or https
        f"{url.rstrip('/')}{path}", orjson.dumps(body), {"Content-Type": "application/json"}, method="PUT"
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            return cast(dict[str, Any], orjson.loads(answer.read()))
    except urllib.error.HTTPError as error:
        raise _error_of(error) from error
    except OSError as error:
        raise UnavailableError(f"{url}: {error}") from error


def _error_of(error: urllib.error.HTTPError) -> StoreError:
    try:
        problem = orjson.loads(error.read())
    except orjson.JSONDecodeError:
        return StoreError(f"HTTP {error.code}")
    return error_of(str(problem.get("reason")), str(problem.get("detail")))
