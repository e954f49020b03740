"""Hostile text stays text: in bodies, keys, tags, properties, topics, groups, the ledger, and in the URL itself.

The fixture `look` asserts at the end of each test that no script ran, no page opened, and no policy was violated.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Route, expect

from tests.console.hostile import BIDI, BODIES, LINK, MARKUP, QUOTES, SCRIPT, TEXTS, TOPIC
from tests.console.watched import Watched

Look = Callable[..., Watched]
_ELEMENTS = (
    "main img, main script, main iframe, main object, main embed, main [style], main [onerror], main form[action]"
)
_PAGES = ("/topics", "/topic", "/messages", "/groups", "/group", "/log", "/damage")


def assert_only_text(page: Watched) -> None:
    """Assert that no text became an element, and no link leads out of the console."""
    assert page.page.locator(_ELEMENTS).count() == 0
    links = page.page.locator("main a").evaluate_all("links => links.map((link) => link.getAttribute('href'))")
    assert all(link.startswith("#/") for link in links)


def add_hostile_topics(page: Watched) -> None:
    """Put hostile names into the list of topics: this service omits them, but another one, or a proxy, may not."""

    def add(route: Route) -> None:
        answer = route.fetch().json()
        answer["topics"] += [{**answer["topics"][0], "topic": name} for name in (MARKUP, SCRIPT, LINK, QUOTES)]
        route.fulfill(json=answer)

    page.page.route(lambda url: url.endswith("/v1/topics"), add)


def test_every_message_opens_in_every_view(look: Look, hostile_url: str) -> None:
    """Text, JSON and hex of all bodies are covered, including NULs, invalid UTF-8 and lines of a million bytes."""
    page = look(hostile_url)
    for number in range(len(BODIES)):
        page.go(f"#/messages?topic={TOPIC}&queue=0&value={number}")
        page.main.locator(".opener").first.click()
        detail = page.main.locator("tr.detail:not([hidden])")
        for tab in detail.locator(".tabs button").all():
            if tab.is_visible():
                tab.click()
        expect(detail.locator("pre")).not_to_be_empty()
        assert_only_text(page)
    assert page.page.evaluate("({}).polluted") is None


def test_hostile_bodies_are_shown_unchanged(look: Look, hostile_url: str) -> None:
    """Every character is compared."""
    page = look(hostile_url, f"#/messages?topic={TOPIC}&queue=0&value=0")
    for number, text in ((0, MARKUP), (1, SCRIPT), (4, QUOTES)):
        page.main.locator(".opener").nth(number).click()
        body = page.main.locator("tr.detail:not([hidden]) pre")
        assert body.text_content() == text
        page.main.locator(".opener").nth(number).click()


def test_invisible_characters_are_shown(look: Look, hostile_url: str) -> None:
    """They are direction marks, zero-width characters and NULs, in the row and in its detail."""
    page = look(hostile_url, f"#/messages?topic={TOPIC}&queue=0&value=3&open=x")
    row = page.main.locator("tr.opens").first
    shown = "user⟨U+202E⟩gnp.exe⟨U+2066⟩⟨U+200B⟩⟨U+0000⟩end"
    assert row.locator("td").last.text_content() == shown
    row.locator(".opener").click()
    assert page.main.locator("tr.detail:not([hidden]) pre").text_content() == shown
    assert "\u202e" not in page.text() and "\u0000" not in page.text() and "\u202e" in BIDI


@pytest.mark.parametrize("place", ["#/", "#/topics", "#/groups", "#/damage", "#/damage?place=0", "#/log"])
def test_lists_show_hostile_names_as_text(look: Look, hostile_url: str, place: str) -> None:
    """The lists are of topics, groups and reasons of damage."""
    page = look(hostile_url)
    add_hostile_topics(page)
    page.go(place)
    page.page.wait_for_timeout(300)
    if place in ("#/topics", "#/groups", "#/damage"):
        assert {text for text in (MARKUP, LINK) if text in page.text()} == {MARKUP, LINK}
    assert_only_text(page)


def test_links_to_hostile_names_show_a_refusal(look: Look, hostile_url: str) -> None:
    """A topic that no path can name is refused before a request is sent."""
    page = look(hostile_url)
    add_hostile_topics(page)
    page.go("#/topics")
    for text in (MARKUP, LINK):
        page.main.get_by_role("link", name=text, exact=True).click()
        expect(page.main.get_by_role("alert")).to_contain_text("is no name")
        assert_only_text(page)
        page.page.go_back()


@pytest.mark.parametrize("page_name", _PAGES)
def test_hostile_parameters_of_the_url_are_only_text(look: Look, hostile_url: str, page_name: str) -> None:
    """Every parameter of every page is tried with every text."""
    names = (
        "name",
        "topic",
        "queue",
        "by",
        "value",
        "tag",
        "find",
        "before",
        "until",
        "cursor",
        "open",
        "size",
        "filter",
        "from",
        "files",
        "place",
        "after",
    )
    page = look(hostile_url)
    for text in (*TEXTS, "../../v1/status", "%2e%2e", "constructor", "__proto__", "9" * 30, "-1", "\ud800"):
        escaped = quote(text, errors="surrogatepass")
        for by in ("", "&by=newest", "&by=tail", "&by=id", "&by=place", "&by=key", "&by=time"):
            page.page.evaluate(
                "hash => { location.hash = hash }",
                f"#{page_name}?" + "&".join(f"{name}={escaped}" for name in names if by == "" or name != "by") + by,
            )
            page.page.wait_for_timeout(15)
        page.settle()
        assert_only_text(page)


@pytest.mark.parametrize(
    "place", [MARKUP, "/constructor", "/__proto__?x=1", f"/{LINK}", "//evil.example/", "/topics/../x"]
)
def test_an_unknown_page_is_reported(look: Look, hostile_url: str, place: str) -> None:
    """This includes names of built-in object properties."""
    page = look(hostile_url, "#/topics")
    page.page.evaluate("hash => { location.hash = hash }", f"#{place}" if place.startswith("/") else f"#/{place}")
    expect(page.main.locator("h1")).to_have_text("No such page")
    assert_only_text(page)


def test_hostile_text_in_the_go_to_field_stays_in_the_console(look: Look, hostile_url: str) -> None:
    """The browser stays in the console, whatever is typed."""
    page = look(hostile_url)
    for text in (MARKUP, LINK, "//evil.example", "../../x", QUOTES):
        page.page.locator("#goto-text").fill(text)
        page.page.keyboard.press("Enter")
        page.settle()
        assert page.page.url.startswith(f"{hostile_url.rstrip('/')}/console#/")
        assert_only_text(page)
