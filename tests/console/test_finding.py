"""The text filter of a list of messages, and the search that reads further in bounded steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.built_store import BuiltStore
from tests.console.hostile import BIDI, MARKUP, SCRIPT, TOPIC
from tests.console.watched import Watched
from tests.query_server import serve_query

Look = Callable[..., Watched]
MESSAGES = 12_000
STEP = 5000  # messages of one step
NEEDLE_EVERY = 1000


@pytest.fixture(scope="module")
def long_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a topic of two queues in which every thousandth message has a needle in its body."""
    store = BuiltStore(tmp_path_factory.mktemp("long") / "store", log_file_size=4 << 20, units_a_file=MESSAGES)
    store.topic("long", queues=2)
    for number in range(MESSAGES):
        text = "needle" if number % NEEDLE_EVERY == 0 else "hay"
        store.append("long", b"%s %d" % (text.encode(), number), {"TAGS": "AB"[number % 2]}, queue_id=number % 3 % 2)
    store.publish()
    with serve_query(store.root) as client:
        yield str(client.base_url)


def find(page: Watched, text: str) -> None:
    page.main.get_by_label("Find in these messages").fill(text)


def rows(page: Watched) -> Locator:
    """Return the rows that the filter lets through."""
    return page.main.locator("tr.opens:not([hidden])")


def state(page: Watched) -> Locator:
    return page.main.locator(".findbar [role=status]")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Shipped to LISBON", "body"),
        ("order-7", "key"),
        ("urgent", "tag"),
        ("tenant", "name of a property"),
        ("acme", "value of a property"),
        ("AC1400", "unique key"),
    ],
)
def test_a_text_is_found_in_every_part_of_a_message(look: Look, tmp_path: Path, text: str, place: str) -> None:
    store = BuiltStore(tmp_path / "store")
    store.topic("orders")
    store.append("orders", b"another", {"TAGS": "slow", "KEYS": "order-8"})
    parts = {"TAGS": "urgent", "KEYS": "order-7", "tenant": "acme", "UNIQ_KEY": "AC1400020BAC0003"}
    store.append("orders", b'{"text": "shipped to Lisbon"}', parts)
    store.append("orders", b"\xff\xfe binary")
    store.publish()
    with serve_query(store.root) as client:
        page = look(str(client.base_url), "#/messages?topic=orders")
        expect(rows(page)).to_have_count(3)
        find(page, text)
        expect(rows(page), place).to_have_count(1)
        expect(rows(page).locator(".opener")).to_have_text("0 / 1")
        expect(state(page)).to_have_text("1 of 3 here.")
        find(page, "")
        expect(rows(page)).to_have_count(3)


def test_the_filter_is_part_of_the_url_and_of_links_to_other_pages(look: Look, url: str) -> None:
    page = look(url, "#/messages?topic=orders")
    find(page, '"n": 4')
    expect(rows(page).locator(".opener")).to_have_text([f"0 / {number}" for number in range(49, 39, -1)])
    page.main.get_by_role("link", name="Older", exact=True).click()
    expect(state(page)).to_have_text("0 of 20 here.")
    page.page.go_back()
    expect(state(page)).to_have_text("10 of 20 here.")
    expect(look(url, page.hash()).main.get_by_label("Find in these messages")).to_have_value('"n": 4')


def test_a_search_reads_further_in_steps_and_reports_how_many(look: Look, long_url: str) -> None:
    """A step has a stated limit. The last one ends with the topic, and every needle was found once."""
    page = look(long_url, "#/messages?topic=long")
    expect(page.button("Look further")).to_be_hidden()
    find(page, "needle")
    expect(state(page)).to_have_text("0 of 20 here.")
    expect(page.main.get_by_text(f"at most {STEP:,} messages")).to_be_visible()
    page.button("Look further").click()
    expect(state(page)).to_have_text(f"0 of 20 here. 5 in {STEP:,} further messages.")
    expect(rows(page)).to_have_count(5)
    page.button("Look further").click()
    expect(state(page)).to_have_text(f"0 of 20 here. 10 in {2 * STEP:,} further messages.")
    page.button("Look further").click()
    expect(state(page)).to_have_text(f"0 of 20 here. 12 in {MESSAGES - 20:,} further messages; there are no more.")
    expect(page.button("Look further")).to_be_hidden()
    found = rows(page).locator("td.preview").all_inner_texts()
    assert found == [f"needle {number}" for number in range(MESSAGES - NEEDLE_EVERY, -1, -NEEDLE_EVERY)]


@pytest.mark.parametrize(
    ("place", "needles"),
    [
        ("topic=long&queue=0&value=0", [0, 2000, 3000, 5000, 6000]),  # numbers of queue 0: all but 1, 4, 7, …
        ("topic=long&by=time&value=0", [0, 1000, 2000, 3000, 4000, 5000]),
        ("topic=long&tag=A", [11000, 10000, 9000, 8000, 7000, 6000, 5000, 4000, 3000]),
    ],
)
def test_every_list_can_be_searched_further(look: Look, long_url: str, place: str, needles: list[int]) -> None:
    """The search continues in the direction of the list. With a tag, only messages of this tag are found."""
    page = look(long_url, f"#/messages?{place}")
    find(page, "needle")
    page.button("Look further").click()
    expect(state(page)).to_contain_text("further messages")
    expect(page.button("Look further")).to_be_visible()
    if "tag" in place:
        page.button("Look further").click()
        expect(state(page)).to_contain_text(f"{2 * STEP:,} further")
    found = [int(text.split()[1]) for text in rows(page).locator("td.preview").all_inner_texts()]
    assert found[: len(needles)] == needles


def test_a_search_is_cancelled_and_continued(look: Look, long_url: str) -> None:
    """After the cancel no request is sent, and the next step continues behind the messages that were searched."""
    page = look(long_url, "#/messages?topic=long")
    held: list[Route] = []
    asked = 0

    def hold(route: Route) -> None:
        nonlocal asked
        asked += 1
        held.append(route)

    page.page.route("**/v1/pull", hold)
    find(page, "needle")
    page.button("Look further").click()
    expect(page.button("Cancel")).to_be_visible()
    page.page.wait_for_timeout(100)
    page.button("Cancel").click()
    before = asked
    while held:
        held.pop().continue_()
        page.page.wait_for_timeout(200)
    expect(page.button("Look further")).to_be_visible()
    expect(state(page)).to_contain_text(" 500 further messages")
    assert asked <= before + 1  # of the same 500 messages
    page.page.unroute("**/v1/pull")
    page.button("Look further").click()
    expect(state(page)).to_contain_text(f" {500 + STEP:,} further messages")
    assert rows(page).locator("td.preview").first.inner_text() == f"needle {MESSAGES - NEEDLE_EVERY}"


def test_another_text_begins_another_search(look: Look, long_url: str) -> None:
    """Messages that were found for the text before are not shown, also if their answer comes later."""
    page = look(long_url, "#/messages?topic=long")
    find(page, "needle")
    page.button("Look further").click()
    expect(state(page)).to_contain_text("further messages")
    find(page, "hay 119")
    expect(state(page)).to_have_text("20 of 20 here.")
    expect(rows(page)).to_have_count(20)
    page.page.wait_for_timeout(500)
    expect(state(page)).to_have_text("20 of 20 here.")
    page.button("Look further").click()
    expect(state(page)).to_contain_text(f"in {STEP:,} further messages")
    assert all("hay 119" in text for text in rows(page).locator("td.preview").all_inner_texts())


def test_a_failed_search_is_reported_and_continued_without_a_gap(look: Look, long_url: str) -> None:
    """Messages that were read before the failure are searched by the next try."""
    page = look(long_url, "#/messages?topic=long")
    find(page, "hay 119")  # messages 11,900 to 11,999
    passed = 0

    def fail_the_second(route: Route) -> None:
        nonlocal passed
        passed += 1
        if passed == 2:
            route.abort()
        else:
            route.continue_()

    page.page.route("**/v1/pull", fail_the_second)
    page.button("Look further").click()
    expect(page.main.get_by_role("alert")).to_contain_text("UNREACHABLE")
    page.button("Look further").click()
    expect(page.main.get_by_role("alert")).to_have_count(0)
    expect(state(page)).to_contain_text("20 of 20 here. 80 in")
    found = [text.split()[1] for text in rows(page).locator("td.preview").all_inner_texts()]
    assert found == [str(number) for number in range(11_999, 11_899, -1)]


def test_the_live_tail_is_filtered_by_text_and_tag(look: Look, store: BuiltStore, url: str) -> None:
    """New messages pass the filter, too; a tag can be chosen for all queues."""
    page = look(url, "#/messages?topic=orders&by=tail&tag=A")
    expect(page.main.get_by_text("Waiting for the next message.")).to_be_visible()
    find(page, "wanted")
    for number in range(6):
        text = "wanted" if number % 3 == 0 else "other"
        store.append("orders", text.encode(), {"TAGS": "AB"[number % 2]}, queue_id=number % 2)
    store.publish()
    expect(rows(page).locator(".opener")).to_have_text(["0 / 50"])
    expect(state(page)).to_have_text("1 of 3 here.")


@pytest.mark.parametrize("text", [MARKUP, SCRIPT, BIDI, "(a+)+$", "\\", "\ud800"])
def test_a_hostile_text_is_only_a_text(look: Look, hostile_url: str, text: str) -> None:
    page = look(hostile_url, f"#/messages?topic={TOPIC}")
    expect(rows(page)).not_to_have_count(0)
    find(page, text)
    expect(state(page)).to_contain_text("of 13 here.")
    assert page.page.locator("main img, main script").count() == 0
