"""Pulls from the files of a store on this host."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.built_store import BuiltStore
from tidemark.client.consumer.file_page_source import FileFetched, FilePulls
from tidemark.client.received_message import TopicQueue
from tidemark.errors import OffsetOutOfRangeError, OffsetTooSmallError, QueryUnreachableError

ORDERS, OTHER = TopicQueue("orders", 0), TopicQueue("orders", 1)
RETRIES = TopicQueue("%RETRY%g", 0)
SOON_S = 10.0  # generous: a test waits for an answer


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return a store with five messages in queue 0 of `orders`, of which two are red."""
    store = BuiltStore(tmp_path)
    store.topic(ORDERS.topic, queues=2)
    store.topic(RETRIES.topic)
    for number in range(5):
        store.append(ORDERS.topic, b"%d" % number, {"TAGS": "red" if number % 2 else "blue"})
    store.publish()
    return store


@pytest.fixture
def pulls_of(store: BuiltStore) -> Iterator[Callable[..., FilePulls]]:
    made: list[FilePulls] = []

    def make(*, tags: tuple[str, ...] = (), max_messages: int = 100, max_bytes: int = 1 << 20) -> FilePulls:
        topics = frozenset({ORDERS.topic})
        made.append(
            FilePulls(store.root, max_messages=max_messages, max_bytes=max_bytes, tags=list(tags), tagged_topics=topics)
        )
        return made[-1]

    yield make
    for pulls in made:
        pulls.close()


@pytest.fixture
def pulls(pulls_of: Callable[..., FilePulls]) -> FilePulls:
    return pulls_of()


def only(pulls: FilePulls, timeout_s: float = SOON_S) -> FileFetched:
    (fetched,) = pulls.fetched(timeout_s)
    return fetched


def bodies(fetched: FileFetched) -> list[bytes]:
    return [message.body for message in fetched.page().messages]


def test_messages_are_read_from_the_wanted_offset_once(pulls: FilePulls) -> None:
    pulls.want(ORDERS, 2)
    page = only(pulls).page()
    assert [(message.queue_offset, message.body) for message in page.messages] == [(2, b"2"), (3, b"3"), (4, b"4")]
    assert (page.requested_offset, page.next_offset, page.min_offset, page.max_offset) == (2, 5, 0, 5)
    assert list(pulls.fetched(0)) == []


@pytest.mark.parametrize(("name", "start", "expected"), [("earliest", 0, 5), ("latest", 5, 0)])
def test_a_named_offset_is_answered_at_once_with_its_number(
    pulls: FilePulls, name: str, start: int, expected: int
) -> None:
    """A consumer must know where `latest` is before a message comes."""
    pulls.want(ORDERS, name)
    page = only(pulls).page()
    assert (page.requested_offset, len(page.messages)) == (start, expected)


def test_a_table_has_the_same_messages_as_a_page(pulls: FilePulls) -> None:
    pulls.want(ORDERS, 1)
    fetched = only(pulls)
    table = fetched.table()
    assert table.table["body"].to_pylist() == bodies(fetched) == [b"1", b"2", b"3", b"4"]
    assert table.next_offset == 5


def test_a_pull_ends_at_the_number_of_messages(pulls_of: Callable[..., FilePulls]) -> None:
    pulls = pulls_of(max_messages=2)
    pulls.want(ORDERS, 0)
    fetched = only(pulls)
    assert (bodies(fetched), fetched.page().next_offset) == ([b"0", b"1"], 2)


def test_tags_apply_to_the_topics_that_were_subscribed_with_them(
    store: BuiltStore, pulls_of: Callable[..., FilePulls]
) -> None:
    """Retried messages have passed the filter before."""
    store.append(RETRIES.topic, b"again", {"TAGS": "blue"})
    store.publish()
    pulls = pulls_of(tags=("red",))
    for queue in (ORDERS, RETRIES):
        pulls.want(queue, 0)
    found = {fetched.queue: bodies(fetched) for fetched in pulls.fetched(SOON_S)}
    assert found == {ORDERS: [b"1", b"3"], RETRIES: [b"again"]}


def test_a_pull_at_the_end_waits_for_the_next_visible_message(store: BuiltStore, pulls: FilePulls) -> None:
    pulls.want(ORDERS, 5)
    assert list(pulls.fetched(0)) == []
    found: list[FileFetched] = []
    waiting = threading.Thread(target=lambda: found.append(only(pulls)), daemon=True)
    waiting.start()
    store.append(ORDERS.topic, b"new")
    waiting.join(0.05)
    assert not found, "the message is not visible before the watermark passes it"
    store.publish()
    waiting.join(SOON_S)
    assert bodies(found[0]) == [b"new"]


@pytest.mark.parametrize("drop", [lambda pulls: pulls.drop(ORDERS), lambda pulls: pulls.keep_only(frozenset({OTHER}))])
def test_a_queue_that_was_dropped_is_not_answered(pulls: FilePulls, drop: Callable[[FilePulls], Any]) -> None:
    pulls.want(ORDERS, 0)
    pulls.want(OTHER, "earliest")
    drop(pulls)
    assert only(pulls).queue == OTHER


def test_an_offset_below_the_queue_is_an_error_with_the_queues_bounds(store: BuiltStore, pulls: FilePulls) -> None:
    (store.root / "commitlog" / f"{0:020d}").unlink()
    store.end = store.log_file_size
    store.append(ORDERS.topic, b"kept")
    store.publish()
    pulls.want(ORDERS, 0)
    fetched = only(pulls)
    for read in (fetched.page, fetched.table):
        with pytest.raises(OffsetTooSmallError) as raised:
            read()
        assert (raised.value.facts["min_offset"], raised.value.facts["max_offset"]) == (5, 6)


def test_an_offset_above_everything_committed_is_an_error(pulls: FilePulls) -> None:
    pulls.want(ORDERS, 7)
    with pytest.raises(OffsetOutOfRangeError) as raised:
        only(pulls).page()
    assert (raised.value.facts["requested_offset"], raised.value.facts["max_offset"]) == (7, 5)


def test_an_offset_that_may_be_committed_is_waited_for(store: BuiltStore, pulls_of: Callable[..., FilePulls]) -> None:
    """Records are committed that are not visible yet, so the queue may have more messages."""
    for number in range(5, 9):
        store.append(ORDERS.topic, b"%d" % number)
    store.commit()
    pulls = pulls_of()
    pulls.want(ORDERS, 7)
    assert list(pulls.fetched(0)) == []
    store.publish()
    assert bodies(only(pulls)) == [b"7", b"8"]


def test_files_are_never_unavailable(pulls: FilePulls) -> None:
    with pytest.raises(QueryUnreachableError):
        pulls.failed(QueryUnreachableError("from another source"))


def test_wake_ends_a_wait_for_messages(pulls: FilePulls) -> None:
    """A consumer that is closed or cancelled does not wait for the end of its poll."""
    pulls.want(ORDERS, 5)
    waiting = threading.Thread(target=lambda: list(pulls.fetched(600.0)), daemon=True)
    waiting.start()
    pulls.wake()
    waiting.join(SOON_S)
    assert not waiting.is_alive()
