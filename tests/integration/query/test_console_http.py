"""The console's files as they are served: headers, types, and compliance with their own policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from services.indexer.query.routes.console import FOLDER
from tests.query_server import serve_query

pytestmark = pytest.mark.integration

FILES = sorted(path.name for path in FOLDER.iterdir() if path.is_file())
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    with serve_query(tmp_path) as client:
        yield client


def directives(response: httpx.Response) -> dict[str, str]:
    """Return the directives of the Content-Security-Policy."""
    parts = [part.strip().partition(" ") for part in response.headers["content-security-policy"].split(";")]
    return {name: value for name, _, value in parts}


@pytest.mark.parametrize("path", ["/console", *(f"/console/{name}" for name in FILES)])
def test_every_file_has_the_strict_headers_and_its_type(client: httpx.Client, path: str) -> None:
    """Scripts and styles come only from this service; inline code, frames, sniffing and referrers are forbidden."""
    response = client.get(path)
    assert response.status_code == 200
    policy = directives(response)
    assert policy["default-src"] == "'none'"
    assert {policy[name] for name in ("script-src", "style-src", "img-src", "connect-src")} == {"'self'"}
    assert {policy[name] for name in ("base-uri", "form-action", "frame-ancestors", "trusted-types")} == {"'none'"}
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["content-type"].startswith(TYPES[Path(path).suffix or ".html"])


def test_a_console_file_with_a_matching_etag_is_304(client: httpx.Client) -> None:
    """Its ETag gives 304; the cache must revalidate it."""
    first = client.get("/console/main.js")
    again = client.get("/console/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert first.headers["cache-control"] == again.headers["cache-control"] == "no-cache"


def test_a_trailing_slash_redirects_to_the_page(client: httpx.Client) -> None:
    """The redirect is relative, so that it works behind any proxy."""
    response = client.get("/console/")
    assert response.headers["location"] == "../console"
    assert client.get("/console/", follow_redirects=True).text == client.get("/console").text


@pytest.mark.parametrize(
    "path", ["../config.py", "..%2fconfig.py", "%2e%2e/config.py", "nothing.js", "..%5cconfig.py", "%00"]
)
def test_unlisted_console_paths_are_404(client: httpx.Client, path: str) -> None:
    """Neither neighbouring files nor missing ones are served."""
    response = client.get(f"/console/{path}")
    assert response.status_code == 404, response.text
    assert response.json()["reason"] == "NO_SUCH_PATH"


def test_a_console_that_is_switched_off_is_404(tmp_path: Path) -> None:
    with serve_query(tmp_path, console=False) as client:
        assert client.get("/console").status_code == client.get("/console/main.js").status_code == 404


def test_the_console_page_has_only_relative_links(client: httpx.Client) -> None:
    """Every address in page and style is relative, and exists."""
    page = client.get("/console").text
    for address in re.findall(r'(?:src|href)="([^"#]+)"', page):
        assert "//" not in address
        assert client.get(f"/{address}").status_code == 200, address
    assert "url(" not in (FOLDER / "style.css").read_text()


def test_no_console_module_writes_html_or_evaluates_text() -> None:
    """The policy forbids it as well; this test finds the place."""
    for path in FOLDER.glob("*.js"):
        found = re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser", path.read_text()
        )
        assert found is None, f"{path.name}: {found}"


def test_only_one_console_module_calls_the_service() -> None:
    """Thus every request has the token."""
    asking = {
        path.name
        for path in FOLDER.glob("*.js")
        if re.search(r"\bfetch\(|XMLHttpRequest|EventSource|WebSocket|sendBeacon", path.read_text())
    }
    assert asking == {"api.js"}
