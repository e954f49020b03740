"""The newest messages over all queues of a topic, and the pages before them."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.built_store import BuiltStore, Written
from tests.console.watched import Watched
from tests.query_server import serve_query

Look = Callable[..., Watched]
QUEUES = 3


class Spread:
    """A store whose topic `spread` has messages in several queues. rows: 'queue / offset' of each, the newest first."""

    def __init__(self, root: Path, *, queues: int = QUEUES, log_file_size: int = 65_536) -> None:
        self.store = BuiltStore(root, log_file_size=log_file_size)
        self.store.topic("spread", queues=queues)
        self.rows: list[str] = []
        self.url = ""

    def append(self, queue_id: int, body: bytes = b"x", **entries: str) -> Written:
        written = self.store.append("spread", body, entries, queue_id=queue_id)
        self.rows.insert(0, f"{queue_id} / {written.queue_offset:,}")
        return written


@pytest.fixture
def spread(tmp_path: Path) -> Iterator[Spread]:
    """Serve 70 messages: 20 in queue 0 alone, 40 in random queues, 10 in queue 2 alone."""
    spread = Spread(tmp_path / "spread")
    choose = random.Random(1)
    for number, queue_id in enumerate([0] * 20 + [choose.randrange(QUEUES) for _ in range(40)] + [2] * 10):
        spread.append(queue_id, b"body %d" % number, TAGS="even" if number % 2 == 0 else "odd")
    spread.store.publish()
    with serve_query(spread.store.root) as client:
        spread.url = str(client.base_url)
        yield spread


def expect_rows(page: Watched, rows: list[str]) -> None:
    expect(page.main.locator(".opener")).to_have_text(rows)


def turn(page: Watched, name: str) -> None:
    page.main.get_by_role("link", name=name, exact=True).click()


def test_the_newest_messages_of_all_queues_are_shown_first(look: Look, spread: Spread) -> None:
    """This is the default of a topic, with the order of the live tail."""
    page = look(spread.url, "#/topic?name=spread")
    page.main.get_by_role("link", name="Browse messages").click()
    expect_rows(page, spread.rows[:20])
    expect(page.main.get_by_text("All 3 queues, newest first")).to_be_visible()


def test_older_and_newer_pages_have_every_message_once(look: Look, spread: Spread) -> None:
    """The pages are read from the newest to the oldest message and back."""
    page = look(spread.url, "#/messages?topic=spread")
    for start in (0, 20, 40, 60):
        expect_rows(page, spread.rows[start : start + 20])
        if start < 60:
            turn(page, "Older")
    expect(page.main.get_by_role("link", name="Older", exact=True)).to_have_count(0)
    for end in (60, 40, 20):
        turn(page, "Newer")
        expect_rows(page, spread.rows[end - 20 : end])
    expect(page.main.get_by_role("link", name="Newer", exact=True)).to_have_count(0)
    turn(page, "First")
    expect_rows(page, spread.rows[50:])
    turn(page, "Newest")
    expect_rows(page, spread.rows[:20])


def test_an_older_page_stays_the_same_while_messages_arrive(look: Look, spread: Spread) -> None:
    """The URL holds the position in each queue."""
    page = look(spread.url, "#/messages?topic=spread")
    turn(page, "Older")
    expect_rows(page, spread.rows[20:40])
    older = spread.rows[20:40]
    for queue_id in (0, 1, 2):
        spread.append(queue_id)
    spread.store.publish()
    page.page.reload()
    expect_rows(page, older)
    turn(page, "Newest")
    expect_rows(page, spread.rows[:20])


def test_one_queue_can_be_selected(look: Look, spread: Spread) -> None:
    page = look(spread.url, "#/messages?topic=spread")
    page.main.get_by_label("Queue").select_option("1")
    page.button("Show").click()
    rows = [row for row in spread.rows if row.startswith("1 /")]
    expect_rows(page, rows[:20])
    expect(page.main.get_by_text(f"Queue 1 holds 0 to {len(rows) - 1}, newest first")).to_be_visible()


def test_a_time_is_found_in_all_queues_with_older_messages_before_it(look: Look, spread: Spread) -> None:
    """From the time on, messages are in the order of the log; the page before them has no gap to them."""
    at_ms = spread.store.clock - 29  # of the thirtieth message from the end
    page = look(spread.url, f"#/messages?topic=spread&by=time&value={at_ms}")
    expect_rows(page, spread.rows[29:9:-1])
    turn(page, "Newer")
    expect_rows(page, spread.rows[9::-1])
    page.page.go_back()
    expect_rows(page, spread.rows[29:9:-1])
    turn(page, "Older")
    expect_rows(page, spread.rows[30:50])
    turn(page, "Newer")
    expect_rows(page, spread.rows[10:30])


def test_the_page_of_a_tag_reads_on_until_it_is_full(look: Look, spread: Spread) -> None:
    """The tag is chosen by a click on a message's tag, and removed by a click in the bar."""
    odd = [row for number, row in enumerate(reversed(spread.rows)) if number % 2][::-1]
    page = look(spread.url, "#/messages?topic=spread")
    page.main.locator("td .chip", has_text="odd").first.click()
    expect_rows(page, odd[:20])
    expect(page.main.locator("input[name=tag]")).to_have_value("odd")
    turn(page, "Older")
    expect_rows(page, odd[20:])
    page.main.get_by_role("link", name="Show all tags, not only odd").click()
    expect(page.main.locator(".chip", has_text="even").first).to_be_visible()


def test_many_queues_are_read_by_few_requests(look: Look, tmp_path: Path) -> None:
    """A topic of 200 queues needs no request for each of them."""
    spread = Spread(tmp_path / "spread", queues=200)
    for number in range(300):
        spread.append(number * 7 % 200)
    spread.store.publish()
    with serve_query(spread.store.root) as client:
        page = look(str(client.base_url), "#/")
        asked: list[str] = []
        page.page.on("request", lambda request: asked.append(request.url))
        page.page.evaluate("() => { location.hash = '#/messages?topic=spread' }")
        expect_rows(page, spread.rows[:20])
        assert 1 <= len([one for one in asked if one.endswith("/v1/pull")]) <= 5


def test_large_bodies_are_read_in_several_answers(look: Look, tmp_path: Path) -> None:
    """An answer has a limit of bytes, which the messages of one page exceed here."""
    spread = Spread(tmp_path / "spread", log_file_size=16 << 20)
    for number in range(30):
        spread.append(number % 2, b"%d " % number * 200_000)
    spread.store.publish()
    with serve_query(spread.store.root) as client:
        page = look(str(client.base_url), "#/messages?topic=spread")
        expect_rows(page, spread.rows[:20])
        turn(page, "Older")
        expect_rows(page, spread.rows[20:])


def test_a_damaged_record_and_a_lost_beginning_leave_no_gap(look: Look, tmp_path: Path) -> None:
    """Queue 0 begins at offset 1,000; a record of queue 1 is damaged, which the page reports."""
    spread = Spread(tmp_path / "spread")
    spread.store.next["spread", 0] = 1000
    for number in range(12):
        written = spread.append(number % 2, b"body of %d" % number)
        if number == 5:
            spread.store.write_log(written.physical_offset + 88, b"!")
            spread.rows.pop(0)
    spread.store.publish()
    with serve_query(spread.store.root) as client:
        page = look(str(client.base_url), "#/messages?topic=spread")
        expect_rows(page, spread.rows)
        expect(page.main.get_by_text("1 damaged record was left out")).to_be_visible()
        expect(page.main.get_by_role("link", name="Older", exact=True)).to_have_count(0)


def test_places_beyond_doubles_are_ordered_exactly(look: Look, tmp_path: Path) -> None:
    """Physical offsets above 2^53 that are equal as doubles decide the order."""
    spread = Spread(tmp_path / "spread", log_file_size=1 << 20)
    spread.store.end = (1 << 60) + (1 << 20)
    for number in range(9):
        spread.append((number * 2) % QUEUES)
    spread.store.publish()
    with serve_query(spread.store.root) as client:
        expect_rows(look(str(client.base_url), "#/messages?topic=spread"), spread.rows)


@pytest.mark.parametrize("topic", ["spread", "orders"])
def test_a_topic_without_messages_is_reported(look: Look, tmp_path: Path, topic: str) -> None:
    spread = Spread(tmp_path / "spread")
    spread.store.topic("orders")
    spread.store.publish()
    with serve_query(spread.store.root) as client:
        page = look(str(client.base_url), f"#/messages?topic={topic}")
        expect(page.main.get_by_text("This topic is empty.")).to_be_visible()


@pytest.mark.parametrize("position", ["9@5", "0@99999,1@0", "x", "0@-1", "<b>", "0@18446744073709551616", ","])
@pytest.mark.parametrize("name", ["before", "after"])
def test_a_position_of_a_wrong_url_shows_messages_or_none(look: Look, spread: Spread, name: str, position: str) -> None:
    """Offsets beyond a queue's bounds are moved into them, and the first page is a click away."""
    page = look(spread.url, f"#/messages?topic=spread&{name}={position}")
    expect(page.main.get_by_text("All 3 queues, newest first")).to_be_visible()
    expect(page.main.get_by_role("alert")).to_have_count(0)


def test_a_copied_command_requests_the_messages_of_the_page(look: Look, spread: Spread) -> None:
    """The command is one request for many queues."""
    page = look(spread.url, "#/messages?topic=spread")
    turn(page, "Older")
    expect_rows(page, spread.rows[20:40])
    page.button("Copy as curl", within=page.main).click()
    expect(page.page.locator("#said")).to_have_text("Copied as curl")
    command = page.page.evaluate("navigator.clipboard.readText()")
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    answers = json.loads(done.stdout)["answers"]
    found = [f"{one['queue_id']} / {message['queue_offset']}" for one in answers for message in one["messages"]]
    assert sorted(found) == sorted(spread.rows[20:40])
