"""The message browser over a real service."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.builders import STORE_MS
from tests.built_store import BuiltStore
from tests.console.watched import Watched
from tests.fixed_ports import fixed_port
from tests.query_server import serve_query

Look = Callable[..., Watched]
BEYOND_DOUBLES = (1 << 60) + (1 << 20)  # a double would be wrong by 256


def offsets(page: Watched) -> list[str]:
    """Return 'queue / offset' of all rows, in their order."""
    return page.main.locator(".opener").all_inner_texts()


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("topic=orders", [f"0 / {number}" for number in range(49, 29, -1)]),
        ("topic=orders&queue=0", [f"0 / {number}" for number in range(49, 29, -1)]),
        ("topic=orders&tag=A", [f"0 / {number}" for number in range(48, 8, -2)]),
        ("topic=orders&by=key&value=k3&tag=B", [f"0 / {number}" for number in (3, 13, 23, 33, 43)]),
        ("topic=orders&by=key&value=k3&tag=A", []),
        ("topic=orders&queue=0&by=offset&value=7", [f"0 / {number}" for number in range(7, 27)]),
        ("topic=orders&queue=0&by=offset&value=0&tag=B", [f"0 / {number}" for number in range(1, 40, 2)]),
        ("topic=orders&by=key&value=k3", [f"0 / {number}" for number in (3, 13, 23, 33, 43)]),
        (f"topic=orders&queue=0&by=time&value={STORE_MS + 46}", [f"0 / {number}" for number in range(45, 50)]),
        (f"topic=orders&by=time&value={STORE_MS + 46}", [f"0 / {number}" for number in range(45, 50)]),
        ("topic=batches&queue=0&by=offset&value=1", ["0 / 1"]),
        ("by=place&value=0", ["0 / 0"]),
    ],
)
def test_each_kind_of_search_finds_its_messages(look: Look, url: str, place: str, expected: list[str]) -> None:
    """The ways are newest, offset, tag, key, time and position."""
    page = look(url, f"#/messages?{place}")
    expect(page.main.locator(".opener")).to_have_count(len(expected))
    assert offsets(page) == expected


def test_a_message_is_found_by_its_id(look: Look, url: str) -> None:
    """The id is typed into the bar's field, after a slash."""
    page = look(url, "#/messages?topic=orders&queue=0&value=4")
    page.main.locator(".opener").first.click()
    message_id = page.main.locator("dt", has_text="Offset message id").locator("xpath=../dd").inner_text()
    page.go("#/")
    page.page.keyboard.press("/")
    page.page.keyboard.type(message_id)
    page.page.keyboard.press("Enter")
    expect(page.main.locator("tr.detail pre")).to_contain_text('"n": 4')


def test_a_search_is_stored_in_a_shareable_url(look: Look, url: str) -> None:
    """The URL has the search, and back and forward move through it."""
    page = look(url, "#/messages?topic=orders")
    page.main.get_by_label("Look by").select_option("Key")
    page.main.locator("input[name=value]").fill("k7")
    page.button("Show").click()
    expect(page.main.locator(".opener")).to_have_count(5)
    assert "by=key" in page.hash() and "value=k7" in page.hash()
    page.page.go_back()
    expect(page.main.locator(".opener")).to_have_count(20)
    page.page.go_forward()
    expect(page.main.locator(".opener")).to_have_count(5)
    page.page.reload()
    expect(page.main.locator(".opener")).to_have_count(5)
    expect(page.main.locator("input[name=value]")).to_have_value("k7")


def test_page_links_show_older_and_newer_messages(look: Look, url: str) -> None:
    """They lead to the first page, step by step, and to the newest, whose first row is the newest message."""
    page = look(url, "#/messages?topic=orders&queue=0&value=20")
    for step, first in (("Older", 0), ("Newer", 20), ("First", 0), ("Newest", 49)):
        page.main.get_by_role("link", name=step, exact=True).click()
        expect(page.main.locator(".opener").first).to_have_text(f"0 / {first}")
    expect(page.main.get_by_role("link", name="Newer", exact=True)).to_have_count(0)


def test_an_open_message_is_part_of_the_url(look: Look, url: str) -> None:
    """A shared URL opens the message."""
    page = look(url, "#/messages?topic=orders&queue=0&value=4")
    page.main.locator(".opener").nth(2).click()
    other = look(url, page.hash())
    expect(other.main.locator("tr.detail:not([hidden]) pre")).to_contain_text('"n": 6')


def test_rows_are_selected_by_arrow_keys_and_opened_by_enter(look: Look, url: str) -> None:
    page = look(url, "#/messages?topic=orders&queue=0&value=0")
    page.main.locator(".opener").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "Enter"):
        page.page.keyboard.press(key)
    opened = page.main.locator(".opener[aria-expanded=true]")
    expect(opened).to_have_text("0 / 1")
    expect(opened).to_be_focused()


def test_the_live_tail_shows_newly_visible_messages(look: Look, store: BuiltStore, url: str) -> None:
    """It shows one queue or a whole topic, the newest first; and no new message while it is paused."""
    one = look(url, "#/messages?topic=orders&by=tail&queue=0&tag=A")
    all_queues = look(url, "#/messages?topic=orders&by=tail")
    expect(one.main.get_by_text("Waiting for the next message.")).to_be_visible()
    for number in range(4):
        store.append("orders", b"live %d" % number, {"TAGS": "AB"[number % 2]}, queue_id=0)
    store.append("orders", b"elsewhere", queue_id=1)
    store.publish()
    expect(one.main.locator(".opener")).to_have_text(["0 / 52", "0 / 50"])
    expect(all_queues.main.locator(".opener")).to_have_text(["1 / 0", "0 / 53", "0 / 52", "0 / 51", "0 / 50"])
    all_queues.button("Pause").click()
    store.append("orders", b"paused", queue_id=1)
    store.publish()
    time.sleep(1.5)
    expect(all_queues.main.locator(".opener")).to_have_count(5)
    all_queues.button("Resume").click()
    expect(all_queues.main.locator(".opener").first).to_have_text("1 / 1")


def test_the_live_tail_continues_when_the_service_returns(look: Look, store: BuiltStore) -> None:
    """It misses no message and repeats none."""
    port = fixed_port()
    with serve_query(store.root, port=port) as client:
        page = look(str(client.base_url), "#/messages?topic=orders&by=tail")
        expect(page.main.get_by_text("Waiting for the next message.")).to_be_visible()
        store.append("orders", b"before", queue_id=1)
        store.publish()
        expect(page.main.locator(".opener")).to_have_text(["1 / 0"])
    store.append("orders", b"meanwhile", queue_id=0)
    store.publish()
    with serve_query(store.root, port=port):
        expect(page.main.locator(".opener")).to_have_text(["0 / 50", "1 / 0"], timeout=20_000)


def test_numbers_beyond_doubles_are_not_rounded(look: Look, tmp_path: Path) -> None:
    """Positions above 2^53 are shown, linked and requested to the last digit."""
    store = BuiltStore(tmp_path / "store", log_file_size=1 << 20)
    store.topic("orders")
    store.end = BEYOND_DOUBLES
    places = [store.append("orders", b"%d" % number).physical_offset for number in range(3)]
    store.publish()
    assert len({float(place) for place in places}) < 3
    with serve_query(store.root) as client:
        page = look(str(client.base_url), "#/messages?topic=orders&queue=0&value=0")
        page.main.locator(".opener").nth(1).click()
        expect(page.main.locator("tr.detail:not([hidden])")).to_contain_text(f"{places[1]:,}")
        assert f"open={places[1]}" in page.hash()
        for number, place in enumerate(places):
            page.go(f"#/messages?by=place&value={place}")
            expect(page.main.locator("tr.detail pre")).to_have_text(str(number))
        page.go(f"#/log?from={places[1]}")
        expect(page.main.locator("h2", has_text="From")).to_contain_text(f"{places[1]:,} to {store.end:,}")


def test_json_keeps_its_numbers_and_its_order(look: Look, tmp_path: Path) -> None:
    """The text is indented, not written anew: 1.10 stays 1.10, and twenty digits stay twenty."""
    body = '{"b":12345678901234567890,"a":[1.10,{}, [] ,"x\\"y,{"],"b":null}'
    store = BuiltStore(tmp_path / "store")
    store.topic("orders")
    store.append("orders", body.encode())
    store.publish()
    with serve_query(store.root) as client:
        page = look(str(client.base_url), "#/messages?topic=orders&queue=0&value=0")
        page.main.locator(".opener").click()
        shown = page.main.locator("pre").text_content() or ""
    assert shown.splitlines()[1:4] == ['  "b": 12345678901234567890,', '  "a": [', "    1.10,"]
    assert json.loads(shown) == json.loads(body)


def test_a_long_body_is_shown_partly_and_completely_on_request(look: Look, tmp_path: Path) -> None:
    store = BuiltStore(tmp_path / "store", log_file_size=1 << 20)
    store.topic("orders")
    store.append("orders", b"x" * 200_000)
    store.publish()
    with serve_query(store.root) as client:
        page = look(str(client.base_url), "#/messages?topic=orders&queue=0&value=0")
        page.main.locator(".opener").click()
        assert len(page.main.locator("pre").text_content() or "") == 65_536
        page.button("Show all").click()
        assert len(page.main.locator("pre").text_content() or "") == 200_000


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("topic=nothing", "TOPIC_NOT_FOUND"),
        ("topic=orders&queue=0&value=51", "OFFSET_OUT_OF_RANGE"),
        ("topic=orders&queue=9&value=0", "QUEUE_ID_ILLEGAL"),
        ("by=id&value=xyz", "ARGUMENT_ILLEGAL"),
        ("by=place&value=1", "NOT_FOUND"),
    ],
)
def test_a_missing_message_is_reported_with_its_reason(look: Look, url: str, place: str, told: str) -> None:
    page = look(url, f"#/messages?{place}")
    expect(page.main.get_by_role("alert")).to_contain_text(told)


def test_an_empty_queue_is_reported(look: Look, url: str) -> None:
    page = look(url, "#/messages?topic=orders&queue=1")
    expect(page.main.get_by_text("This queue is empty.")).to_be_visible()
