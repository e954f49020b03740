"""A route whose endpoint reads the request itself; FastAPI only describes it.

FastAPI's parsing of arguments and its stacks for dependencies take longer than a small pull.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..schema.query_arguments import refusal
from .route_access import GuardedRoute


class PlainRoute(GuardedRoute):
    """A route for endpoints that take the request and the path's parameters and return a Response.

    Raises:
        TypeError: it has dependencies, which this route would ignore.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **described: Any) -> None:
        super().__init__(path, endpoint, **described)
        if self.dependencies:
            raise TypeError(f"{path}: a PlainRoute can have no dependencies")
        self._respond = self.get_route_handler()

    async def _handle_allowed(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the endpoint's response; the application's exception handlers answer its errors."""
        response = await self._respond(Request(scope, receive, send))
        await response(scope, receive, send)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler for FastAPI. It raises RequestValidationError for an invalid path parameter."""
        endpoint: Callable[..., Coroutine[Any, Any, Response]] = self.endpoint
        parameters = inspect.signature(endpoint, eval_str=True).parameters
        adapters = {name: TypeAdapter(one.annotation) for name, one in parameters.items() if name != "request"}

        async def handle(request: Request) -> Response:
            texts = request.path_params
            values = {name: _checked(adapter, name, texts[name]) for name, adapter in adapters.items()}
            return await endpoint(request, **values)

        return handle


def _checked(adapter: TypeAdapter[Any], name: str, text: str) -> Any:
    try:
        return adapter.validate_python(text)
    except ValidationError as error:
        raise refusal(error, "path", name) from None
