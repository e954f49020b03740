"""axe-core finds nothing, and no page scrolls sideways: every page, light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.built_store import BuiltStore
from tests.console.watched import Watched
from tests.query_server import serve_query

Look = Callable[..., Watched]
PLACES = (
    "#/",
    "#/topics",
    "#/topic?name=orders",
    "#/messages",
    "#/messages?topic=orders",
    "#/messages?topic=orders&tag=A&find=n&before=0@30",
    "#/messages?topic=orders&by=key&value=k1",
    "#/messages?topic=orders&by=tail",
    "#/messages?by=place&value=0",
    "#/groups",
    "#/group?name=billing",
    "#/log",
    "#/log?from=0",
    "#/damage",
    "#/damage?place=0",
    "#/topic?name=nothing",
    "#/nothing",
)


@pytest.fixture
def damaged_url(store: BuiltStore) -> Iterator[str]:
    """Serve the usual store with one entry in the ledger."""
    ledger = store.root / "tidemark" / "indexer" / "ledger-0.jsonl"
    ledger.write_text(
        '{"physical_offset": 0, "size": 100, "reason": "BODY_CRC", "topic": "orders", "queue_id": 0, '
        '"queue_offset": 0, "found_ms": 1700000000000}\n'
    )
    with serve_query(store.root) as client:
        client.put("/v1/groups/billing/topics/orders/queues/0/offset", json={"offset": 20}).raise_for_status()
        yield str(client.base_url)


def found_by_axe(page: Watched) -> list[str]:
    """Return rule and first element of each violation."""
    violations = Axe().run(page.page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in violations]


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_is_accessible_and_fits(look: Look, damaged_url: str, dark: bool, width: int) -> None:
    """The first message, the table and the form are open, if there are any."""
    page = look(damaged_url, dark=dark, width=width)
    for place in PLACES:
        page.go(place)
        page.page.wait_for_timeout(300)
        for closed in page.main.locator("summary").all():
            closed.click()
        if page.main.locator(".opener").count():
            page.main.locator(".opener").first.click()
        assert found_by_axe(page) == [], place
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width, place


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_dialogs_are_accessible(look: Look, damaged_url: str, dark: bool) -> None:
    """The dialog is the reset of a group, in both of its steps."""
    page = look(damaged_url, "#/group?name=billing", dark=dark, width=400)
    page.button("Reset queue 0 of orders").click()
    assert found_by_axe(page) == []
    page.button("Look what changes").click()
    expect(page.button("Reset now")).to_be_visible()
    assert found_by_axe(page) == []


def test_the_chosen_theme_overrides_that_of_the_system(look: Look, url: str) -> None:
    """The choice is kept."""
    page = look(url, dark=True)
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.page.evaluate(ground)
    page.page.locator("#theme").click()
    light = page.page.evaluate(ground)
    assert light != dark
    page.page.reload()
    page.settle()
    assert page.page.evaluate(ground) == light
