"""Routes that parse their requests themselves."""

import pytest
from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from services.indexer.query.web.plain_route import PlainRoute


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
