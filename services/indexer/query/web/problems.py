"""Converts failures to `application/problem+json` (RFC 9457) by the table in `tidemark.status`."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import orjson
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from tidemark.errors import Fact, StoreError
from tidemark.status import STATUS, status_of
from tidemark.tracing.request_id import HEADER, current_request_id

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:tidemark:problem:"
_TITLES = {status.reason: status.reason.replace("_", " ").capitalize() for status in STATUS.values()}
_HTTP_REASONS = {404: "NO_SUCH_PATH", 405: "METHOD_NOT_ALLOWED", 406: "NOT_ACCEPTABLE", 413: "MESSAGE_SIZE_EXCEEDED"}
_UNAUTHENTICATED, _NOT_FOUND, _METHOD_NOT_ALLOWED = 401, 404, 405
_MOST_PATH = 200  # characters of a path in an error

_log = structlog.get_logger()


def problem(status: int, reason: str, detail: str, facts: dict[str, Any] | None = None) -> Response:
    """Return a problem as a response. *facts* are added to RFC 9457's members and never replace them."""
    content = {
        **(facts or {}),
        "type": TYPE_PREFIX + reason.lower().replace("_", "-"),
        "title": _TITLES.get(reason, reason.replace("_", " ").capitalize()),
        "status": status,
        "reason": reason,
        "detail": detail,
    }
    request_id = current_request_id()
    if request_id is not None:
        content["request_id"] = request_id
    headers = {"Cache-Control": "no-store"}
    retry_after_ms = content.get("retry_after_ms")
    if isinstance(retry_after_ms, int):
        headers["Retry-After"] = str(max(1, retry_after_ms // 1000))
    if status == _UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE), status, headers, MEDIA_TYPE)


def of_store_error(error: StoreError, **more: Fact) -> Response:
    """Return *error* as a problem. more: facts in addition to the error's own."""
    status = status_of(error)
    return problem(status.http_status, status.reason, error.message, {**error.facts, **more})


def _of_validation(error: RequestValidationError) -> Response:
    faults = [
        {"where": ".".join(str(part) for part in fault["loc"]), "what": fault["msg"].removeprefix("Value error, ")}
        for fault in error.errors()
    ]
    detail = "; ".join(f"{fault['where']}: {fault['what']}" for fault in faults)
    return problem(422, "ARGUMENT_ILLEGAL", detail, {"faults": faults})


def _detail_of(error: HTTPException, request: Request) -> str:
    """Return the error's detail; for a path or method that does not exist, with the nearest that does."""
    path = request.url.path
    if error.status_code == _NOT_FOUND:
        known = {getattr(route, "path", "") for route in request.app.router.routes}
        close = get_close_matches(path[:_MOST_PATH], known, n=1, cutoff=0.75)
        hint = f"did you mean {close[0]}? " if close else ""
        return f"there is no path {path[:_MOST_PATH]}; {hint}/docs lists all paths"
    if error.status_code == _METHOD_NOT_ALLOWED:
        allowed = (error.headers or {}).get("Allow", "")
        hint = "; topics are deleted over gRPC: tidemark topic delete" if request.method == "DELETE" else ""
        return f"{request.method} is not allowed here, but {allowed}{hint}"
    return str(error.detail)


def install(app: FastAPI) -> None:
    """Make *app* answer every failure as a problem."""

    @app.exception_handler(StoreError)
    async def _store(_: Request, error: StoreError) -> Response:
        return of_store_error(error)

    @app.exception_handler(RequestValidationError)
    async def _validation(_: Request, error: RequestValidationError) -> Response:
        return _of_validation(error)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        reason = _HTTP_REASONS.get(error.status_code, "HTTP_ERROR")
        response = problem(error.status_code, reason, _detail_of(error, request))
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(ClientDisconnect)
    async def _gone(_: Request, error: ClientDisconnect) -> Response:
        return problem(400, "BAD_REQUEST", "the connection ended during the request")  # the client is gone

    @app.exception_handler(Exception)
    async def _unknown(request: Request, error: Exception) -> Response:
        _log.error("request_failed", path=request.url.path, error=repr(error))
        response = problem(500, "INTERNAL", "internal error: see request_failed in the service's log")
        response.headers[HEADER] = current_request_id() or ""  # this response does not pass through the middleware
        return response
