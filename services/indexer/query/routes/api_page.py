"""`/docs`: the API in Swagger UI, from files of the folder `api_page`, so that it needs no other server.

`scripts/swagger_ui.sh` gets another version of Swagger UI.
"""

from __future__ import annotations

from pathlib import Path

from starlette.routing import BaseRoute

from ..web.static_pages import page_routes

PATH = "/docs"
FOLDER = Path(__file__).parents[1] / "api_page"
# Swagger UI sets styles in elements, and has images in its stylesheet.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def routes() -> list[BaseRoute]:
    """Return the routes of the page."""
    return page_routes(PATH, FOLDER, POLICY)
