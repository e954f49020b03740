"""Pages of the service in a folder each: `index.html`, and the files that it names with relative links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",  # browsers keep the file and revalidate it by its ETag
}


class _Files(StaticFiles):
    """Static files with the page's headers."""

    def __init__(self, folder: Path, headers: dict[str, str]) -> None:
        super().__init__(directory=folder)
        self._headers = headers

    def file_response(self, *arguments: Any, **named: Any) -> Response:
        """Return starlette's response with the page's headers, also for 304."""
        response = super().file_response(*arguments, **named)
        response.headers.update(self._headers)
        return response


def page_routes(path: str, folder: Path, policy: str) -> list[BaseRoute]:
    """Return the routes of the page at *path*. Its links are relative, so that a proxy may add a prefix.

    policy: its Content-Security-Policy
    """
    headers = {"Content-Security-Policy": policy, **HEADERS}
    files = _Files(folder, headers)

    async def page(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    async def without_slash(_: Request) -> Response:
        return RedirectResponse(f"..{path}", headers=headers)

    return [
        Route(path, page, methods=["GET"], include_in_schema=False),
        Route(f"{path}/", without_slash, methods=["GET"], include_in_schema=False),
        Mount(path, files),
    ]


def redirect(to: str) -> BaseRoute:
    """Return the route that leads from / to the page at *to*."""

    async def begin(_: Request) -> Response:
        return RedirectResponse(to.removeprefix("/"), headers=HEADERS)

    return Route("/", begin, methods=["GET"], include_in_schema=False)
