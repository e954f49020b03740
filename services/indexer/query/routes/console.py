"""`/console`: serves the files of the folder `console`. They contain no data; the console reads its data from /v1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

FOLDER = Path(__file__).parents[1] / "console"
# No content from other origins, no inline code, no framing, and no text that becomes HTML or a script (Trusted Types).
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",  # browsers keep the file and revalidate it by its ETag
}


class ConsoleFiles(StaticFiles):
    """Static files with the console's headers."""

    def file_response(self, *arguments: Any, **named: Any) -> Response:
        """Return starlette's response with the console's headers, also for 304."""
        response = super().file_response(*arguments, **named)
        response.headers.update(HEADERS)
        return response


def routes() -> list[BaseRoute]:
    """Return the routes of the page and its files. The page's links are relative, so that a proxy may add a prefix."""
    files = ConsoleFiles(directory=FOLDER)

    async def page(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    async def without_slash(_: Request) -> Response:
        return RedirectResponse("../console", headers=HEADERS)

    return [
        Route("/console", page, methods=["GET"], include_in_schema=False),
        Route("/console/", without_slash, methods=["GET"], include_in_schema=False),
        Mount("/console", files),
    ]
