"""DirectDispatch: answers the GETs of PlainRoutes before the middleware stack, which would take longer than a lookup.

It has the stack's effects in one function: request id, metrics, and failures as problems. Requests that need more of
the stack (traces, `pretty`, other methods, unknown paths) go through it, so both must behave the same.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from starlette.convertors import StringConvertor
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from tidemark.tracing.request_id import begin_request

from ..state.metrics import Metrics
from .plain_route import PlainRoute
from .pretty_json import PARAMETER as PRETTY
from .request_id_middleware import RAW_HEADER, given_id


class DirectDispatch:
    """The direct way to the PlainRoutes of *app*, whose routes and exception handlers must be complete."""

    def __init__(self, app: FastAPI, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._handlers: Mapping[Any, Any] = app.exception_handlers
        self._routes: list[tuple[re.Pattern[str], PlainRoute | None]] = [
            (route.path_regex, route if isinstance(route, PlainRoute) and _has_texts(route) else None)
            for route in app.router.routes
            if isinstance(route, Route) and "GET" in (route.methods or ())
        ]

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer the request, or return False if it needs the middleware stack."""
        if scope["type"] != "http" or scope["method"] != "GET" or PRETTY in scope["query_string"]:
            return False
        route = self._route_of(scope)
        if route is None:
            return False
        await self._run(route, scope, receive, send)
        return True

    def _route_of(self, scope: Scope) -> PlainRoute | None:
        """Return the first route that fits, as the router does, and set its parameters; None for the stack."""
        path = scope["path"]
        if scope.get("root_path"):
            return None
        for regex, route in self._routes:
            match = regex.match(path)
            if match is not None:
                scope["path_params"] = match.groupdict()
                return route
        return None

    async def _run(self, route: PlainRoute, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.monotonic()
        request_id = begin_request(given_id(scope)).encode()
        scope["app"], scope["route"] = self._app, route
        is_started = False

        async def send_and_count(message: Message) -> None:
            if message["type"] == "http.response.start":
                nonlocal is_started
                is_started = True
                message["headers"] = [*message["headers"], (RAW_HEADER, request_id)]
                self._metrics.count_answer(route.path, message["status"], time.monotonic() - began)
            await send(message)

        try:
            await route.handle(scope, receive, send_and_count)
        except Exception as error:
            if is_started:
                raise
            handler = next(self._handlers[kind] for kind in type(error).__mro__ if kind in self._handlers)
            response = await handler(Request(scope, receive, send), error)
            if handler is self._handlers[Exception]:  # as in the stack: not counted, and the server logs it
                await response(scope, receive, send)
                raise
            await response(scope, receive, send_and_count)


def _has_texts(route: Route) -> bool:
    """Return True if the path's parameters stay as they are in the path."""
    return all(isinstance(convertor, StringConvertor) for convertor in route.param_convertors.values())
