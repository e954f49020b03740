"""Stores that an older Tidemark has written (`scripts/old_store.py`), opened and continued by this one."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from scripts.old_store import QUEUES, message
from tidemark.client import Consumer, Message, Producer, Query, ReceivedMessage
from tidemark.local.local_stack import LocalStack

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]
DATA = Path(__file__).parent / "data"
NEW = 40


class Upgraded(NamedTuple):
    """An old store, opened by the present services, and its maker's record of its contents."""

    stack: LocalStack
    held: dict[str, Any]

    @property
    def topic(self) -> str:
        return str(self.held["topic"])

    def bodies(self, queue_id: int) -> list[str]:
        """Return the bodies of one queue, in order."""
        return [message(number)["body"] for number in range(queue_id, self.held["messages"], QUEUES)]


@pytest.fixture(scope="module", params=sorted(DATA.glob("*.json")), ids=lambda path: path.stem)
def upgraded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    """Run all three services on a copy."""
    described: Path = request.param
    folder = tmp_path_factory.mktemp(described.stem)
    with tarfile.open(described.with_suffix(".tar.xz")) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        archive.extractall(folder)
    with LocalStack(folder / "store") as stack:
        yield Upgraded(stack, json.loads(described.read_text()))


def test_the_data_has_stopped_and_killed_old_stores() -> None:
    """One was stopped in order, and one has a writer that was killed before all was indexed."""
    assert {path.name.split("-")[1] for path in DATA.glob("*.tar.xz")} == {"stopped.tar.xz", "killed.tar.xz"}


def test_all_messages_of_an_old_store_are_read_and_found(upgraded: Upgraded) -> None:
    """Order, offsets and keys are the same. Nothing is damaged."""
    with Query(upgraded.stack.query_url) as query:
        for queue_id in range(QUEUES):
            bodies = upgraded.bodies(queue_id)
            page = query.pull(upgraded.topic, queue_id, 0, max_messages=1000, wait_ms=20_000, body_encoding="utf8")
            while len(page["messages"]) < len(bodies):
                page = query.pull(upgraded.topic, queue_id, 0, max_messages=1000, body_encoding="utf8")
            assert [one["body"] for one in page["messages"]][: len(bodies)] == bodies
        for number in range(0, upgraded.held["messages"], 37):
            sent = message(number)
            (found,) = query.by_key(upgraded.topic, sent["keys"][0], body_encoding="utf8")["messages"]
            assert (found["body"], found["tag"]) == (sent["body"], sent["tag"])
        assert query.get("/v1/corruptions")["corruptions"] == []


def test_a_group_of_an_old_store_continues_at_its_offset(upgraded: Upgraded) -> None:
    """It gets the messages that it had not read."""
    offsets = {int(queue_id): offset for queue_id, offset in upgraded.held["offsets"].items()}
    expected = {body for queue_id, offset in offsets.items() for body in upgraded.bodies(queue_id)[offset:]}
    read: set[str] = set()
    with Consumer(upgraded.topic, group=upgraded.held["group"], url=upgraded.stack.query_url) as consumer:
        while not expected <= read:
            messages = consumer.poll(20)
            assert messages, "the remaining messages did not come"
            assert all(one.queue_offset >= offsets[one.queue_id] for one in messages)
            read |= {one.text() for one in messages}


def test_appends_to_an_old_store_continue_after_its_messages(upgraded: Upgraded) -> None:
    """Queue offsets are dense, store times do not go back, and new messages are read together with old ones."""
    old = upgraded.bodies(1)
    new = [f"new {number}" for number in range(NEW)]
    with Producer(upgraded.stack.writer_address) as producer:
        sent = [producer.send(Message(upgraded.topic, body), queue_id=1) for body in new[:1]]
        sent += [producer.send_batch([Message(upgraded.topic, body) for body in new[1:]], queue_id=1)]
    assert [result.queue_offset for result in sent] == [len(old), len(old) + 1]
    with Consumer(queues=[(upgraded.topic, 1)], url=upgraded.stack.query_url) as consumer:
        read: list[ReceivedMessage] = []
        while len(read) < len(old) + NEW:
            messages = consumer.poll(20)
            assert messages, "the new messages did not come"
            read += messages
    assert [one.text() for one in read] == old + new
    times = [one.store_timestamp_ms for one in read]
    assert times == sorted(times)
