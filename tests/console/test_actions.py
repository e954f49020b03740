"""Actions that change something: creation of topics, reset of groups. And the loss and return of the service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
from playwright.sync_api import expect

from tests.built_store import BuiltStore
from tests.console.watched import Watched
from tests.integration.writer.harness import RunningWriter
from tests.query_server import serve_query

Look = Callable[..., Watched]
OFFSET = "/v1/groups/billing/topics/orders/queues/0/offset"


def test_a_topic_is_created_by_a_real_writer(look: Look, tmp_path: Path) -> None:
    """The page links to it."""
    with (
        RunningWriter(tmp_path / "store") as writer,
        serve_query(writer.root, writer_address=writer.address) as client,
    ):
        page = look(str(client.base_url), "#/topics")
        expect(page.main.get_by_text("No topics yet.")).to_be_visible()
        page.main.locator("summary").click()
        page.main.get_by_label("Name").fill("batches")
        page.main.get_by_label("Queues", exact=True).fill("3")
        page.main.get_by_label("Kind of queues").select_option("BatchCQ")
        page.button("Create topic").click()
        page.main.get_by_role("link", name="batches").click()
        expect(page.main.locator("h1")).to_have_text("batches")
        expect(page.main.locator("dl")).to_contain_text("BatchCQ")
        assert client.get("/v1/topics/batches").json()["write_queues"] == 3


def test_creating_a_topic_without_a_writer_names_a_remedy(look: Look, url: str) -> None:
    page = look(url, "#/topics")
    page.main.locator("summary").click()
    page.main.get_by_label("Name").fill("new")
    page.button("Create topic").click()
    expect(page.main.get_by_role("alert")).to_contain_text("TIDEMARK_WRITER_ADDRESS")


def test_a_group_is_reset_after_confirmation(look: Look, url: str) -> None:
    """The dialog shows the changes first; nothing changes before the confirmation."""
    page = look(url, "#/group?name=billing")
    page.button("Reset queue 0 of orders").click()
    dialog = page.page.locator("dialog")
    dialog.get_by_label("Continue at").select_option("earliest")
    page.button("Look what changes").click()
    expect(dialog).to_contain_text("reads 20 messages again")
    assert httpx.get(f"{url}{OFFSET}").json()["offset"] == 20
    page.button("Reset now").click()
    expect(dialog).to_have_count(0)
    assert httpx.get(f"{url}{OFFSET}").json()["offset"] == 0
    expect(page.main.locator("td", has_text="50").last).to_be_visible()


def test_changing_the_reset_target_withdraws_the_confirmation(look: Look, url: str) -> None:
    """An operator must not confirm unseen changes."""
    page = look(url, "#/group?name=billing")
    page.button("Reset orders").click()
    dialog = page.page.locator("dialog")
    page.button("Look what changes").click()
    expect(dialog).to_contain_text("skips 30 messages for ever")
    dialog.get_by_label("Continue at").select_option("time")
    expect(page.button("Reset now")).to_have_count(0)
    page.button("Cancel").click()
    assert httpx.get(f"{url}{OFFSET}").json()["offset"] == 20


def test_a_group_with_members_is_not_reset(look: Look, url: str) -> None:
    """The dialog gives the reason."""
    httpx.post(f"{url}/v1/groups/billing/members", json={"topics": ["orders"]}).raise_for_status()
    page = look(url, "#/group?name=billing")
    page.button("Reset queue 0 of orders").click()
    page.button("Look what changes").click()
    page.button("Reset now").click()
    expect(page.page.locator("dialog").get_by_role("alert")).to_contain_text("GROUP_ACTIVE")
    assert httpx.get(f"{url}{OFFSET}").json()["offset"] == 20


def test_an_unreachable_service_is_reported_and_recovers_without_reload(look: Look, store: BuiltStore) -> None:
    """The overview does not need a reload."""
    with serve_query(store.root) as client:
        url, port = str(client.base_url), client.base_url.port
        page = look(url, "#/")
        expect(page.main.locator(".tile .figure").first).to_have_text("0 B/s")
    banner = page.page.locator("#unreachable")
    expect(banner).to_be_visible()
    assert port is not None
    with serve_query(store.root, port=port):
        expect(banner).to_be_hidden()


def test_a_hidden_page_sends_no_requests(look: Look, url: str) -> None:
    """Requests resume when the page is shown."""
    page = look(url, "#/")
    asked: list[str] = []
    page.page.on("request", lambda request: asked.append(request.url))
    hide = """yes => {
      Object.defineProperty(document, "hidden", { value: yes, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.page.evaluate(hide, True)
    page.page.wait_for_timeout(300)
    asked.clear()
    page.page.wait_for_timeout(2500)
    assert asked == []
    page.page.evaluate(hide, False)
    page.page.wait_for_timeout(1500)
    assert len(asked) >= 2
