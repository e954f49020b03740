"""A real browser, and stores to view with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from scripts.browser import open_browser
from tests.built_store import BuiltStore
from tests.console.hostile import hostile_store
from tests.console.watched import Watched, watched
from tests.query_server import serve_query


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def look(browser: Browser) -> Iterator[Callable[..., Watched]]:
    """Return look(url, place, dark=, width=), which opens a page. At the end no page may have had a fault."""
    opened: list[Watched] = []

    def open_page(url: str, place: str = "", *, dark: bool = False, width: int = 1280) -> Watched:
        page = watched(browser, url, dark=dark, width=width)
        opened.append(page)
        page.go(place)
        return page

    yield open_page
    for one in opened:
        one.close()


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return a store with topic `orders`: 50 messages in queue 0, ten keys, two tags; topic `batches`; a group."""
    store = BuiltStore(tmp_path / "store", log_file_size=4096)
    store.topic("orders", queues=2)
    store.topic("batches", batch=True)
    for number in range(50):
        store.append("orders", b'{"n": %d}' % number, {"TAGS": "AB"[number % 2], "KEYS": f"k{number % 10}"})
    store.append_batch("batches", [(b"b0", {"TAGS": "A"}, 0), (b"b1", {"KEYS": "inner"}, 0)])
    store.publish()
    return store


@pytest.fixture
def url(store: BuiltStore) -> Iterator[str]:
    """Serve `store`, and yield the URL."""
    with serve_query(store.root) as client:
        client.put("/v1/groups/billing/topics/orders/queues/0/offset", json={"offset": 20}).raise_for_status()
        yield str(client.base_url)


@pytest.fixture(scope="session")
def hostile_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a store in which all foreign text is hostile, and yield the URL."""
    root = tmp_path_factory.mktemp("hostile") / "store"
    hostile_store(root)
    with serve_query(root) as client:
        yield str(client.base_url)
