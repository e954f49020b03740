from __future__ import annotations

import re

import pytest

from services.indexer.query.routes import api_page, console
from services.indexer.query.web.static_pages import HEADERS
from tests.built_store import BuiltStore
from tests.unit.query.served_app import ServedApp


@pytest.mark.parametrize("path", ["/console", "/docs"])
def test_a_page_and_everything_that_it_loads_are_served(service: ServedApp, path: str) -> None:
    page = service.get(path)
    assert page.headers["content-type"].startswith("text/html")
    links = re.findall(r'(?:src|href)="(?!#|https?:)([^"]+)"', page.text)
    assert links
    for link in links:
        assert service.get(f"/{link}").status_code == 200, link


@pytest.mark.parametrize(("path", "policy"), [("/console", console.POLICY), ("/docs", api_page.POLICY)])
def test_every_answer_has_the_content_security_headers(service: ServedApp, path: str, policy: str) -> None:
    for answer in (service.get(path), service.get(f"{path}/"), service.get(f"{path}/icon.svg")):
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert answer.headers["Content-Security-Policy"] == policy


def test_a_matching_etag_is_answered_with_304(service: ServedApp) -> None:
    answer = service.get("/console", headers={"If-None-Match": service.get("/console").headers["ETag"]})
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["Content-Security-Policy"] == console.POLICY


@pytest.mark.parametrize("path", ["/console", "/docs"])
def test_a_trailing_slash_redirects_to_the_page(service: ServedApp, path: str) -> None:
    """Otherwise the relative links of the page would be looked up one folder too deep."""
    answer = service.get(f"{path}/")
    assert (answer.status_code, answer.headers["Location"]) == (307, f"..{path}")


def test_the_root_leads_to_the_console(service: ServedApp, built: BuiltStore) -> None:
    """Without the console it leads to the API. The address is relative, so that a proxy may add a prefix."""
    answer = service.get("/")
    assert (answer.status_code, answer.headers["Location"]) == (307, "console")
    with ServedApp(built, console=False) as served:
        assert served.get("/console").status_code == 404
        assert served.get("/").headers["Location"] == "docs"
