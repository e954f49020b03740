"""The form that sends a message, over the three real services: writer, pipeline and query service."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.access_files import AccessFolder
from tests.console.hostile import QUOTES, SCRIPT
from tests.console.watched import Watched
from tidemark.client import Credentials, Topics
from tidemark.format.tags import DELAY_LEVELS_MS
from tidemark.testing.server import TidemarkServer

Look = Callable[..., Watched]


@pytest.fixture(scope="module")
def server() -> Iterator[TidemarkServer]:
    """Run services with the topic `orders` of two queues, and a message in it."""
    with TidemarkServer() as server:
        with server.producer() as producer:
            producer.topics.create("orders", queues=2)
            producer.send("orders", b"first")
        server.wait_until_visible()
        yield server


def open_form(page: Watched) -> Locator:
    page.main.locator("summary", has_text="Send a message").click()
    return page.main.locator("form.send")


def send(page: Watched, form: Locator) -> Locator:
    """Send, and return the outcome."""
    page.button("Send", within=form).click()
    outcome = form.get_by_role("status").last
    expect(outcome).not_to_be_empty()
    return outcome


def newest(server: TidemarkServer) -> dict[str, Any]:
    """Return the newest message of `orders`."""
    server.wait_until_visible()
    with server.query() as query:
        found = query.get("/v1/topics/orders/messages", limit=1000, body_encoding="base64")["messages"]
    message: dict[str, Any] = found[-1]
    return message


@pytest.mark.parametrize("place", ["#/topic?name=orders", "#/messages?topic=orders"])
def test_a_message_is_sent_and_its_position_is_a_link(look: Look, server: TidemarkServer, place: str) -> None:
    """All of its parts are stored, and the link opens the message."""
    page = look(server.query_url, place)
    form = open_form(page)
    form.get_by_label("Body", exact=True).fill(f"two\nlines {SCRIPT}")
    form.get_by_label("Keys").fill("k1 k2")
    form.get_by_label("Tag of the message").fill("urgent")
    form.get_by_label("Properties").fill("lang = en\n\nequation= a=b")
    outcome = send(page, form)
    expect(outcome).to_contain_text("Stored: queue")
    stored = newest(server)
    assert base64.b64decode(stored["body"]).decode() == f"two\nlines {SCRIPT}"
    assert (stored["keys"], stored["tag"]) == (["k1", "k2"], "urgent")
    assert stored["properties"].items() >= {"lang": " en", "equation": " a=b"}.items()
    outcome.get_by_role("link").click()
    expect(page.main.locator("tr.detail:not([hidden]) pre")).to_contain_text(SCRIPT)
    expect(page.main.locator(".opener")).to_have_text(f"{stored['queue_id']} / {stored['queue_offset']}")


@pytest.mark.parametrize(
    ("encoding", "typed", "body"),
    [
        ("Text", QUOTES, QUOTES.encode()),
        ("JSON", '{"b": 1.10,  "a": 12345678901234567890}', b'{"b": 1.10,  "a": 12345678901234567890}'),
        ("Base64", "/wAB\n/w==", b"\xff\x00\x01\xff"),
    ],
)
def test_a_body_is_stored_as_typed(look: Look, server: TidemarkServer, encoding: str, typed: str, body: bytes) -> None:
    """JSON is not written anew: numbers and spaces stay. Base64 is stored as the bytes that it stands for."""
    page = look(server.query_url, "#/topic?name=orders")
    form = open_form(page)
    form.get_by_label("Body is").select_option(encoding)
    form.get_by_label("Body", exact=True).fill(typed)
    expect(send(page, form)).to_contain_text("Stored: ")
    assert base64.b64decode(newest(server)["body"]) == body


@pytest.mark.parametrize(
    ("label", "text", "reason", "detail"),
    [
        ("Body", "{", "BODY_ILLEGAL", "not JSON"),
        ("Properties", "novalue", "PROPERTIES_ILLEGAL", "name=value"),
        ("Properties", "a=1\na=2", "PROPERTIES_ILLEGAL", "given twice"),
        ("Tag of the message", "a||b", "PROPERTIES_ILLEGAL", "separates tags"),
        ("Keys", "k\u0001", "PROPERTIES_ILLEGAL", "control"),
    ],
)
def test_a_refused_message_is_reported_with_reason_and_detail(
    look: Look, server: TidemarkServer, label: str, text: str, reason: str, detail: str
) -> None:
    """Nothing is stored."""
    before = newest(server)["physical_offset"]
    page = look(server.query_url, "#/topic?name=orders")
    form = open_form(page)
    form.get_by_label("Body", exact=True).fill("{}")
    form.get_by_label("Body is").select_option("JSON")
    form.locator("label", has=page.page.get_by_text(label, exact=True)).locator("input, textarea").fill(text)
    alert = send(page, form).get_by_role("alert")
    expect(alert).to_contain_text(reason)
    expect(alert).to_contain_text(detail)
    assert newest(server)["physical_offset"] == before


def test_a_delayed_message_shows_its_time_of_delivery(look: Look, server: TidemarkServer) -> None:
    """The levels are RocketMQ's. After its delay of a second the message is in its topic."""
    page = look(server.query_url, "#/topic?name=orders")
    form = open_form(page)
    levels = form.get_by_label("Delay level").locator("option").all_inner_texts()
    assert len(levels) == 1 + len(DELAY_LEVELS_MS)
    assert [levels[1], levels[5], levels[18]] == ["1: 1.0 s", "5: 1 min", "18: 2 h"]
    form.get_by_label("Body", exact=True).fill("later")
    form.get_by_label("Delay level").select_option("1")
    outcome = send(page, form)
    expect(outcome).to_contain_text("to be delivered")
    expect(outcome.locator("time")).to_be_visible()
    deadline = time.monotonic() + 60
    while base64.b64decode(newest(server)["body"]) != b"later":
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_message_whose_answer_was_lost_is_stored_once(look: Look, server: TidemarkServer) -> None:
    """The same content is sent again with the same key; another content has another key."""
    page = look(server.query_url, "#/topic?name=orders")

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    form = open_form(page)
    form.get_by_label("Body", exact=True).fill("once")
    page.page.route("**/v1/topics/orders/messages", lose)
    expect(send(page, form).get_by_role("alert")).to_contain_text("UNREACHABLE")
    page.page.unroute("**/v1/topics/orders/messages")
    page.button("Send", within=form).click()
    expect(form.get_by_role("status").last).to_contain_text("Stored already: ")
    first = newest(server)
    page.button("Send", within=form).click()
    expect(form.get_by_role("status").last).to_contain_text("Stored: ")
    second = newest(server)
    assert base64.b64decode(first["body"]) == base64.b64decode(second["body"]) == b"once"
    assert first["physical_offset"] < second["physical_offset"]


def test_the_form_is_shown_only_to_callers_with_the_right(look: Look, tmp_path: Path) -> None:
    """A reader sees the topic without the form; a sender sends through the same service."""
    folder = tmp_path / "access"
    folder.mkdir()
    files = AccessFolder(folder)
    service, reader, sender = (files.principal(name) for name in ("service", "reader", "sender"))
    files.rule("service", ["All"], "*")
    files.rule("reader", ["Sub"], "Topic:orders")
    files.rule("sender", ["Pub", "Sub"], "Topic:orders")
    token = tmp_path / "token"
    token.write_text(service)
    settings = {"TIDEMARK_ACCESS_FILE": str(files.path), "TIDEMARK_TOKEN_FILE": str(token)}
    with TidemarkServer(tmp_path / "store", settings=settings) as server:
        with server.producer(credentials=Credentials(token=service)) as producer:
            producer.topics.create("orders", queues=1)
        for principal, is_allowed in ((reader, False), (sender, True)):
            page = look(server.query_url, "")
            page.page.evaluate("token => sessionStorage.setItem('tidemark-token', token)", principal)
            for place in ("#/topic?name=orders", "#/messages?topic=orders"):
                page.page.goto(f"{server.query_url}/console{place}")
                page.page.reload()
                expect(page.main.get_by_role("table").first).to_be_visible()
                expect(page.main.locator("form.send")).to_have_count(int(is_allowed))
            if is_allowed:
                form = open_form(page)
                form.get_by_label("Body", exact=True).fill("allowed")
                expect(send(page, form)).to_contain_text("Stored: ")


def test_a_topic_without_the_permission_to_write_has_no_form(look: Look, server: TidemarkServer) -> None:
    with Topics(server.writer_address) as topics:
        topics.create("archive", queues=1)
        topics.alter("archive", permission=4)
    page = look(server.query_url, "#/topic?name=archive")
    expect(page.main.locator("dd", has_text="read").first).to_be_visible()
    expect(page.main.locator("form.send")).to_have_count(0)
