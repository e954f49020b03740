"""Routes that parse their requests themselves."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from services.indexer.query.web.plain_route import PlainRoute
from tidemark.access.guard import Guard
from tidemark.access.rate_limits import RateLimits


async def endpoint(request: Request) -> Response:
    """Return an empty response."""
    return Response()


@pytest.mark.parametrize("router_wide", [False, True])
def test_a_route_with_dependencies_is_refused(router_wide: bool) -> None:
    """Such a route would document the dependency without running it, which could hide a missing access check."""
    dependencies = [Depends(lambda: None)]
    router = APIRouter(route_class=PlainRoute, dependencies=dependencies if router_wide else None)
    with pytest.raises(TypeError, match="no dependencies"):
        router.add_api_route("/healthz", endpoint, dependencies=None if router_wide else dependencies)


def test_the_endpoint_runs_without_fastapis_stacks() -> None:
    """FastAPI puts its stacks for dependencies into the scope. They cost more than a lookup."""
    router = APIRouter(route_class=PlainRoute)
    router.add_api_route("/v1/watermark", endpoint)
    (route,) = router.routes
    assert isinstance(route, PlainRoute)
    service = SimpleNamespace(guard=Guard(None, RateLimits(), None))
    app = SimpleNamespace(state=SimpleNamespace(service=service))
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/v1/watermark", "path_params": {}, "app": app}
    sent: list[Any] = []

    async def keep(message: Any) -> None:
        sent.append(message)

    async def nothing() -> Any:
        raise AssertionError("not read")

    asyncio.run(route.handle(scope, nothing, keep))
    assert sent[0]["status"] == 200
    assert not [name for name in scope if name.startswith("fastapi")]
