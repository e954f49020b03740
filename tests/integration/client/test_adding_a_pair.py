"""A second pair is added to a topic: existing data does not move, and new messages are spread over both."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.indexing import ONCE, index_once
from benchmarks.stack import running
from tests.integration.client.stored import read_log
from tidemark.client import Consumer, Producer, Query, SendResult, Topics
from tidemark.errors import MessageNotFoundError
from tidemark.local.local_stack import QUERY, WRITER, LocalStack

pytestmark = pytest.mark.integration
TOPIC, QUEUES = "orders", 4
SETTINGS = {"TIDEMARK_INDEX_SLOTS": "1000", "TIDEMARK_INDEX_ENTRIES": "4000"}


@pytest.fixture
def pairs(tmp_path: Path) -> Iterator[dict[str, LocalStack]]:
    """Return two stores; `index` indexes new messages."""
    names = {name: {**SETTINGS, "TIDEMARK_STORE_NAME": name} for name in ("a", "b")}
    with (
        running(tmp_path / "a", WRITER, QUERY, settings=names["a"]) as a,
        running(tmp_path / "b", WRITER, QUERY, settings=names["b"]) as b,
    ):
        yield {"a": a, "b": b}


def write_route(path: Path, pairs: dict[str, LocalStack], *names: str) -> None:
    path.write_text(json.dumps({name: pairs[name].writer_address for name in names}))


def index(pairs: dict[str, LocalStack]) -> None:
    for pair in pairs.values():
        index_once(pair.data, *ONCE, "--pipeline", "plain", settings=SETTINGS)


def wait_for_writers(producer: Producer, count: int) -> None:
    """Wait for it: a route file is checked once a second."""
    deadline = time.monotonic() + 10
    while len({queue.writer for queue in producer.queues(TOPIC)}) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def numbers(results: list[SendResult]) -> dict[tuple[str, int], list[int]]:
    """Return queue offsets by writer and queue, in the order of sends."""
    found = defaultdict(list)
    for result in results:
        found[result.writer, result.queue_id].append(result.queue_offset)
    return dict(found)


def test_adding_a_pair_moves_no_message_and_spreads_new_ones(tmp_path: Path, pairs: dict[str, LocalStack]) -> None:
    """The old log is a prefix of the new one; its queues continue, those of the other pair begin at 0."""
    a, b = (pairs[name].writer_address for name in ("a", "b"))
    route = tmp_path / "route.json"
    write_route(route, pairs, "a")
    with Producer(route_file=route) as producer:
        producer.topics.create(TOPIC, queues=QUEUES)
        before = [producer.send(TOPIC, f"early {n}", keys=f"early-{n}") for n in range(20)]
        log_before = read_log(a)

        with Topics(b) as topics:
            topics.create(TOPIC, queues=QUEUES)
        write_route(route, pairs, "a", "b")
        wait_for_writers(producer, 2)
        after = [producer.send(TOPIC, f"late {n}") for n in range(80)]

    assert read_log(a)[: len(log_before)] == log_before
    assert {result.writer for result in before} == {a}
    grown = numbers([*before, *after])
    assert grown.keys() == {(writer, queue_id) for writer in (a, b) for queue_id in range(QUEUES)}
    assert all(offsets == list(range(len(offsets))) for offsets in grown.values())
    assert sum(result.writer == b for result in after) == 40

    index(pairs)
    _expect_lookups(pairs, before)
    _expect_consumed(pairs, [result.writer for result in before], [result.writer for result in after])


def _expect_lookups(pairs: dict[str, LocalStack], before: list[SendResult]) -> None:
    """Early messages are found by key and id only in the store to which they were sent."""
    with Query(pairs["a"].query_url) as of_a, Query(pairs["b"].query_url) as of_b:
        for number in range(len(before)):
            (found,) = of_a.by_key(TOPIC, f"early-{number}", body_encoding="utf8")["messages"]
            assert (found["body"], found["queue_offset"]) == (f"early {number}", before[number].queue_offset)
            assert of_a.message(found["offset_msg_id"] or "")["queue_id"] == before[number].queue_id
            assert of_b.by_key(TOPIC, f"early-{number}")["messages"] == []
        with pytest.raises(MessageNotFoundError):
            of_b.message(found["offset_msg_id"] or "")


def _expect_consumed(pairs: dict[str, LocalStack], early: list[str], late: list[str]) -> None:
    """A consumer for each pair reads its store; both together read everything once."""
    texts = [*(f"early {n}" for n in range(len(early))), *(f"late {n}" for n in range(len(late)))]
    where = dict(zip(texts, [*early, *late], strict=True))
    for pair in pairs.values():
        with Consumer(TOPIC, group="all", url=pair.query_url) as consumer:
            got: list[str] = []
            while messages := consumer.poll(timeout_s=2):
                got += [message.text() for message in messages]
            assert sorted(got) == sorted(text for text, writer in where.items() if writer == pair.writer_address)
