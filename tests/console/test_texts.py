"""Times, numbers and emoji as the console writes them, and as it accepts them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.builders import STORE_MS
from tests.built_store import BuiltStore
from tests.console.watched import Watched
from tests.query_server import serve_query

Look = Callable[..., Watched]
UTC = "2023-11-14 22:13:20.124 UTC"  # STORE_MS + 1, the store time of the first message
KATHMANDU = "2023-11-15 03:58:20.124 UTC+05:45"
ASTRONAUT = "\U0001f469\u200d\U0001f680"
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"


def shown_by(page: Watched, text: str) -> str:
    """Return *text* as the console shows it."""
    shown: str = page.page.evaluate("async (text) => (await import('./console/text.js')).visible(text)", text)
    return shown


# -- times ------------------------------------------------------------------------------------------------------------


def test_a_time_is_in_utc_with_local_time_on_hover(look: Look, url: str) -> None:
    page = look(url, "#/messages?topic=orders&queue=0&value=0")
    stored = page.main.locator("td.time time").first
    expect(stored).to_have_text(UTC)
    expect(stored).to_have_attribute("title", KATHMANDU)
    assert page.page.evaluate("new Date(document.querySelector('time').dateTime).getTime()") == STORE_MS + 1


def test_times_can_be_local_on_every_page(look: Look, url: str) -> None:
    """The choice is kept, and fields for times follow it."""
    place = f"#/messages?topic=orders&queue=0&by=time&value={STORE_MS + 1}"
    page = look(url, place)
    expect(page.main.locator("input[name=value]")).to_have_value("2023-11-14T22:13:20.124")
    expect(page.main.get_by_label("Time (UTC)")).to_be_visible()
    page.button("Times: UTC").click()
    page.page.reload()
    page.settle()
    expect(page.main.locator("td.time time").first).to_have_text(KATHMANDU)
    expect(page.main.get_by_label("Time (local)")).to_have_value("2023-11-15T03:58:20.124")
    page.button("Show").click()
    page.settle()
    assert f"value={STORE_MS + 1}" in page.hash()
    expect(page.main.locator(".opener").first).to_have_text("0 / 0")
    page.button("Times: local").click()
    expect(page.main.locator("td.time time").first).to_have_text(UTC)


@pytest.mark.parametrize("ms", ["0", "-5", "8640000000000000", "9223372036854775807", "null"])
def test_an_impossible_time_is_a_dash(look: Look, url: str, ms: str) -> None:
    """Store times come from files, and a page must not fail because of one."""
    page = look(url)
    assert page.page.evaluate(f"async () => (await import('./console/times.js')).moment({ms})") == "–"


# -- numbers ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def long_queue_url(tmp_path: Path) -> Iterator[str]:
    """Serve a queue whose first message has offset 45,010,325."""
    store = BuiltStore(tmp_path / "long")
    store.topic("orders")
    store.topic("orders-late")
    store.next["orders", 0] = 45_010_325
    for number in range(3):
        store.append("orders", b"body %d" % number)
    store.publish()
    with serve_query(store.root) as client:
        yield str(client.base_url)


@pytest.mark.parametrize(
    ("typed", "place", "shown"),
    [
        ("orders/0@45,010,326", "value=45010326", "0 / 45,010,326"),
        ("orders/0@45010326", "value=45010326", "0 / 45,010,326"),
        ("0", "by=place&value=0", "0 / 45,010,325"),
        ("{place:,}", "by=place&value={place}", "0 / 45,010,326"),
    ],
)
def test_the_field_of_the_bar_accepts_numbers_as_shown(
    look: Look, long_queue_url: str, typed: str, place: str, shown: str
) -> None:
    """Offsets and places in the log have separators wherever the console shows them."""
    page = look(long_queue_url, "#/messages?topic=orders&queue=0&value=45010326")
    page.main.locator(".opener").first.click()
    found = page.main.locator("dt", has_text="Place").locator("xpath=../dd").inner_text().replace(",", "")
    page.page.locator("#goto-text").fill(typed.format(place=int(found)))
    page.page.keyboard.press("Enter")
    expect(page.main.locator(".opener").first).to_have_text(shown)
    assert place.format(place=found) in page.hash()


def test_the_value_field_accepts_an_offset_as_shown(look: Look, long_queue_url: str) -> None:
    page = look(long_queue_url, "#/messages?topic=orders&queue=0&value=45010325")
    page.main.get_by_label("Offset", exact=True).fill("45,010,327")
    page.button("Show").click()
    expect(page.main.locator(".opener")).to_have_text(["0 / 45,010,327"])


def test_the_reset_of_a_group_accepts_an_offset_as_shown(look: Look, long_queue_url: str) -> None:
    place = f"{long_queue_url}/v1/groups/billing/topics/orders/queues/0/offset"
    httpx.put(place, json={"offset": 45_010_325}).raise_for_status()
    page = look(long_queue_url, "#/group?name=billing")
    page.button("Reset queue 0 of orders").click()
    dialog = page.page.locator("dialog")
    dialog.get_by_label("Continue at").select_option("offset")
    dialog.get_by_label("Offset", exact=True).fill("45,010,327")
    page.button("Look what changes").click()
    expect(dialog).to_contain_text("skips 2 messages for ever")
    page.button("Reset now").click()
    expect(dialog).to_have_count(0)
    assert httpx.get(place).json()["offset"] == 45_010_327


def test_the_bounds_of_a_queue_end_with_its_last_message(look: Look, url: str) -> None:
    page = look(url, "#/messages?topic=orders&queue=0&value=0")
    expect(page.main.get_by_text("Queue 0 holds 0 to 49")).to_be_visible()


# -- the field of the bar ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("/orders", "#/topic?name=orders"),
        ("orders", "#/topic?name=orders"),
        ("LATE", "#/topic?name=orders-late"),
        ("order", "#/topics?filter=order"),
        ("nothing", "#/topics?filter=nothing"),
    ],
)
def test_a_typed_topic_is_opened(look: Look, long_queue_url: str, typed: str, place: str) -> None:
    """Its own name, or a part of one name only, leads to the topic; a part of several names to the filtered list."""
    page = look(long_queue_url)
    page.page.locator("#goto-text").fill(typed)
    page.page.keyboard.press("Enter")
    expect(page.main.locator("h1")).to_have_text("Topics" if "filter" in place else place.rpartition("=")[2])
    assert page.hash() == place


# -- emoji ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [ASTRONAUT, ENGLAND, "❤️", f"a{ASTRONAUT}{ENGLAND}b", "\U0001f468\u200d\U0001f469\u200d\U0001f467"]
)
def test_an_emoji_of_several_characters_is_shown_as_one(look: Look, url: str, text: str) -> None:
    assert shown_by(look(url), text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u200db", "a⟨U+200D⟩b"),
        (f"{ASTRONAUT}\u200d", f"{ASTRONAUT}⟨U+200D⟩"),
        (f"{ASTRONAUT}\u202eb", f"{ASTRONAUT}⟨U+202E⟩b"),
        ("\U0001f680\u200d\U0001f680", "\U0001f680⟨U+200D⟩\U0001f680"),  # no emoji of Unicode's list
        ("a\U000e0067\U000e007f", "a⟨U+E0067⟩⟨U+E007F⟩"),
        (f"{ENGLAND}\U000e0062", f"{ENGLAND}⟨U+E0062⟩"),
    ],
)
def test_invisible_characters_outside_an_emoji_stay_visible(look: Look, url: str, text: str, shown: str) -> None:
    assert shown_by(look(url), text) == shown
