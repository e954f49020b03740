"""A route whose endpoint reads the request itself; FastAPI describes it and stays out of the way.

Its own reading and checking of arguments, and the stacks it opens for dependencies, take longer than a small pull.
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
    """For endpoints of (request, and what is in the path) that return a Response.

    raises TypeError when it is given dependencies, which it would not ask
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **described: Any) -> None:
        super().__init__(path, endpoint, **described)
        if self.dependencies:
            raise TypeError(f"{path}: a plain route has no dependencies")
        self._respond = self.get_route_handler()

    async def _go_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What the endpoint raises, the application's handlers answer."""
        response = await self._respond(Request(scope, receive, send))
        await response(scope, receive, send)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As FastAPI asks for it. The handler raises RequestValidationError for a path that does not fit."""
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
