"""A consumer's source of messages: the query service, or the files of a store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.built_store import BuiltStore
from tests.unit.client.fake_service import serving
from tests.unit.client.received_messages import ORDERS
from tidemark.client.consumer.open_page_source import PullSource
from tidemark.client.received_message import JSON, TopicQueue
from tidemark.client.rest.page import ARROW
from tidemark.client.rest.query import Query
from tidemark.errors import TopicNotFoundError
from tidemark.tls.credentials import Credentials

TIMEOUT_S = 20.0
RETRIES = TopicQueue("%RETRY%g", 0)


def source(*, url: str = "", store: Path | None = None, **fields: Any) -> PullSource:
    given: dict[str, Any] = {"tag": None, "max_messages": 32, "max_bytes": None, **fields}
    return PullSource(
        url, store, timeout_s=TIMEOUT_S, credentials=Credentials(), topics=frozenset({ORDERS.topic}), **given
    )


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return a store with a red, a blue and a green message, and a fourth one that is not visible yet."""
    store = BuiltStore(tmp_path)
    store.topic(ORDERS.topic)
    for color in ("red", "blue", "green"):
        store.append(ORDERS.topic, color.encode(), {"TAGS": color})
    store.publish()
    store.append(ORDERS.topic, b"later", {"TAGS": "red"})
    return store


def bodies(source: PullSource, queue: TopicQueue = ORDERS) -> list[bytes]:
    """Return the bodies of the first answer."""
    pulls = source.open(JSON)
    try:
        pulls.want(queue, "earliest")
        (fetched,) = pulls.fetched(TIMEOUT_S)
        return [message.body for message in fetched.page().messages]
    finally:
        pulls.close()


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        (None, [b"red", b"blue", b"green"]),
        ("blue", [b"blue"]),
        (["red", "green"], [b"red", b"green"]),
        (("red || blue",), [b"red", b"blue"]),
    ],
)
def test_a_store_is_read_with_the_tags_of_the_subscription(
    store: BuiltStore, tag: str | Sequence[str] | None, expected: list[bytes]
) -> None:
    assert bodies(source(store=store.root, tag=tag)) == expected


def test_a_store_is_read_within_the_limits(store: BuiltStore) -> None:
    """The first message is returned regardless of its size."""
    assert bodies(source(store=store.root, max_messages=2)) == [b"red", b"blue"]
    assert bodies(source(store=store.root, max_bytes=1)) == [b"red"]


def test_the_service_is_asked_with_the_limits_and_tags_that_were_given() -> None:
    """Each request waits for messages."""
    with serving() as service:
        service.add(ORDERS, b"x")
        service.add(RETRIES, b"again")
        assert bodies(source(url=service.url, tag=["a", "b"], max_messages=7)) == [b"x"]
        assert bodies(source(url=service.url, tag="a", max_messages=None, max_bytes=99), RETRIES) == [b"again"]
        first, second = (request.parameters for request in service.requests if request.path != "/v1/watermark")
    assert (first["max_messages"], first["tag"], first["wait_ms"]) == (["7"], ["a", "b"], ["15000"])
    assert (second["max_messages"], second["max_bytes"]) == (["500"], ["99"])
    assert "tag" not in second, "retried messages have passed the filter before"


def test_a_table_has_more_messages_than_a_poll() -> None:
    """A page of a table costs the service about as much as hundreds of messages."""
    pulled = source(max_messages=None)
    assert pulled.limits(JSON) == (500, 1 << 20)
    assert pulled.limits(ARROW) == (8192, 4 << 20)
    assert source(max_messages=7, max_bytes=99).limits(ARROW) == (7, 99)


def test_the_bounds_of_a_queue_are_those_of_the_visible_messages(store: BuiltStore) -> None:
    """The files give the answer that the service gives."""
    with serving() as service, Query(service.url) as query:
        service.add(ORDERS, b"1", b"2", b"3")
        from_service = source(url=service.url).bounds(query, ORDERS)
        requests = len(service.requests)
        from_files = source(store=store.root)
        assert from_files.bounds(query, ORDERS) == from_service == (0, 3)
        assert from_files.stored_end(ORDERS) == 3
        assert len(service.requests) == requests, "the service need not run"


def test_a_topic_that_the_store_does_not_have_is_an_error(store: BuiltStore) -> None:
    with pytest.raises(TopicNotFoundError):
        source(store=store.root).stored_end(TopicQueue("unknown", 0))
