"""Routes that read their request themselves."""

import pytest
from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from services.indexer.query.web.plain_route import PlainRoute


async def endpoint(request: Request) -> Response:
    """Answers nothing."""
    return Response()


@pytest.mark.parametrize("router_wide", [False, True])
def test_dependencies_are_refused(router_wide: bool) -> None:
    """They would be described and never asked: a door that looks locked."""
    dependencies = [Depends(lambda: None)]
    router = APIRouter(route_class=PlainRoute, dependencies=dependencies if router_wide else None)
    with pytest.raises(TypeError, match="no dependencies"):
        router.add_api_route("/healthz", endpoint, dependencies=None if router_wide else dependencies)
