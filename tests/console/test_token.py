"""A service that requires a token: the console asks for it, sends it, forgets it, and shows refusals."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Route, expect

from tests.console.watched import Watched

Look = Callable[..., Watched]
TOKEN = "correct horse"


def guarded(page: Watched, *, may_write: bool = True) -> list[str | None]:
    """Require TOKEN for every request of the page from now on; return the received credentials, in order."""
    came: list[str | None] = []

    def guard(route: Route) -> None:
        given = route.request.headers.get("authorization")
        came.append(given)
        if given != f"Bearer {TOKEN}":
            refuse(route, 401, "UNAUTHENTICATED", {"WWW-Authenticate": "Bearer"})
        elif route.request.method != "GET" and not may_write:
            refuse(route, 403, "FORBIDDEN", {})
        else:
            route.continue_()

    page.page.route("**/v1/**", guard)
    return came


def look_guarded(look: Look, url: str, place: str, *, may_write: bool = True) -> Watched:
    """Open a page that asks for a token."""
    page = look(url)
    guarded(page, may_write=may_write)
    page.page.goto(f"{url}/console{place}")
    page.page.reload()
    return page


def refuse(route: Route, status: int, reason: str, headers: dict[str, str]) -> None:
    """Answer with problem+json."""
    content = json.dumps({"type": "urn:x", "title": reason, "status": status, "reason": reason, "detail": "no"})
    route.fulfill(status=status, content_type="application/problem+json", headers=headers, body=content)


def give(page: Watched, token: str) -> None:
    """Enter the token into the dialog."""
    page.page.locator("dialog input[type=password]").fill(token)
    page.button("Continue").click()


def test_the_console_asks_for_a_token_once_and_continues(look: Look, url: str) -> None:
    """A page with several requests asks for one token, and then shows its data."""
    page = look(url)
    came = guarded(page)
    page.page.goto(f"{url}/console#/messages?topic=orders")
    page.page.reload()
    expect(page.page.locator("dialog")).to_have_count(1)
    give(page, TOKEN)
    expect(page.main.locator(".opener")).to_have_count(20)
    expect(page.page.locator("dialog")).to_have_count(0)
    assert came[0] is None and came[-1] == f"Bearer {TOKEN}"


def test_a_wrong_token_is_requested_again(look: Look, url: str) -> None:
    page = look_guarded(look, url, "#/topics")
    give(page, "wrong")
    expect(page.page.locator("dialog")).to_contain_text("did not take that one")
    give(page, TOKEN)
    expect(page.main.get_by_role("link", name="orders", exact=True)).to_be_visible()


def test_a_token_is_stored_only_in_the_tab(look: Look, url: str) -> None:
    """It survives a reload; it is in no cookie, no URL and no storage that outlives the tab."""
    page = look_guarded(look, url, "#/topics")
    give(page, TOKEN)
    expect(page.main.get_by_role("link", name="orders", exact=True)).to_be_visible()
    page.page.reload()
    expect(page.main.get_by_role("link", name="orders", exact=True)).to_be_visible()
    kept = page.page.evaluate("[JSON.stringify({...localStorage}), document.cookie, location.href].join()")
    assert TOKEN not in kept


def test_a_token_can_be_removed(look: Look, url: str) -> None:
    """The console then asks again."""
    page = look_guarded(look, url, "#/topics")
    give(page, TOKEN)
    expect(page.button("Forget token")).to_be_visible()
    page.button("Forget token").click()
    expect(page.page.locator("dialog")).to_be_visible()
    assert page.page.evaluate("JSON.stringify({...sessionStorage})") == "{}"


def test_a_page_without_a_token_reports_unauthenticated(look: Look, url: str) -> None:
    """After a cancel there is no data, and no second dialog for the same page."""
    page = look_guarded(look, url, "#/topics")
    page.button("Cancel").click()
    expect(page.main.get_by_role("alert")).to_contain_text("UNAUTHENTICATED")
    expect(page.page.locator("dialog")).to_have_count(0)


@pytest.mark.parametrize("kind", ["curl", "Python"])
def test_a_copied_command_names_the_token_variable_and_not_the_token(look: Look, url: str, kind: str) -> None:
    page = look_guarded(look, url, "#/topic?name=orders")
    give(page, TOKEN)
    page.button(f"Copy as {kind}").click()
    expect(page.page.locator("#said")).to_have_text(f"Copied as {kind}")
    text = page.page.evaluate("navigator.clipboard.readText()")
    assert "TIDEMARK_TOKEN" in text and TOKEN not in text


def test_a_forbidden_action_is_reported(look: Look, url: str) -> None:
    """The actions are the creation of a topic and the reset of a group; nothing has changed."""
    page = look_guarded(look, url, "#/topics", may_write=False)
    give(page, TOKEN)
    page.main.locator("summary").click()
    page.main.locator("input[name=topic]").fill("new")
    page.button("Create topic").click()
    expect(page.main.get_by_role("alert")).to_contain_text("Not allowed")
    page.page.goto(f"{url}/console#/group?name=billing")
    page.button("Reset queue 0 of orders").click()
    page.button("Look what changes").click()
    page.button("Reset now").click()
    expect(page.page.locator("dialog").get_by_role("alert")).to_contain_text("Not allowed")
