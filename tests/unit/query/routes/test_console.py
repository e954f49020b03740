from __future__ import annotations

import re

import pytest

from services.indexer.query.routes.console import HEADERS
from tests.built_store import BuiltStore
from tests.unit.query.served_app import ServedApp


def test_the_page_and_everything_that_it_loads_are_served(service: ServedApp) -> None:
    page = service.get("/console")
    assert page.headers["content-type"].startswith("text/html")
    links = re.findall(r'(?:src|href)="(?!#|https?:)([^"]+)"', page.text)
    assert links
    for link in links:
        assert service.get(f"/{link}").status_code == 200, link


@pytest.mark.parametrize("path", ["/console", "/console/"])
def test_every_console_answer_has_the_content_security_headers(service: ServedApp, path: str) -> None:
    answer = service.get(path)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS


def test_a_matching_etag_is_answered_with_304(service: ServedApp) -> None:
    answer = service.get("/console", headers={"If-None-Match": service.get("/console").headers["ETag"]})
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]


def test_a_trailing_slash_redirects_to_the_console(service: ServedApp) -> None:
    """Otherwise the relative links of the page would be looked up one folder too deep."""
    answer = service.get("/console/")
    assert (answer.status_code, answer.headers["Location"]) == (307, "../console")


def test_a_disabled_console_is_404(built: BuiltStore) -> None:
    with ServedApp(built, console=False) as served:
        assert served.get("/console").status_code == 404
