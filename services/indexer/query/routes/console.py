"""`/console`: serves the files of the folder `console`. They contain no data; the console reads its data from /v1."""

from __future__ import annotations

from pathlib import Path

from starlette.routing import BaseRoute

from ..web.static_pages import page_routes

PATH = "/console"
FOLDER = Path(__file__).parents[1] / "console"
# No content from other origins, no inline code, no framing, and no text that becomes HTML or a script (Trusted Types).
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


def routes() -> list[BaseRoute]:
    """Return the routes of the console."""
    return page_routes(PATH, FOLDER, POLICY)
