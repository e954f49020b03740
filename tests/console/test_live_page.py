"""examples/live_page.py in a real browser: messages appear, also after the service was away."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import uvicorn
from playwright.sync_api import Browser, expect

from examples import live_page
from tests.built_store import BuiltStore
from tests.fixed_ports import fixed_port
from tests.query_server import serve_query


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """Serve the example; yield its URL and the port at which it expects the query service."""
    port, query_port = fixed_port(), fixed_port()
    monkeypatch.setattr(live_page, "TIDEMARK", f"http://127.0.0.1:{query_port}")
    server = uvicorn.Server(uvicorn.Config(live_page.app, port=port, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    yield f"http://127.0.0.1:{port}", query_port
    server.should_exit = True
    thread.join(20)


def test_messages_appear_and_none_is_missed_or_repeated(
    browser: Browser, example: tuple[str, int], store: BuiltStore
) -> None:
    url, query_port = example
    page = browser.new_page()
    items = page.locator("#orders li")
    with serve_query(store.root, port=query_port):
        page.goto(url)
        expect(items).to_have_count(50, timeout=20_000)
        store.append("orders", b"<b>live</b>", {})
        store.publish()
        expect(items.nth(50)).to_have_text("<b>live</b>", timeout=20_000)
    store.append("orders", b"while it was away", {})
    store.publish()
    with serve_query(store.root, port=query_port):
        expect(items.nth(51)).to_have_text("while it was away", timeout=20_000)
        expect(items).to_have_count(52)
        page.close()
