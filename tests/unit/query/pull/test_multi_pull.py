from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.requests import Request
from starlette.types import Message

from services.indexer.query.pull.multi_pull import Make, ManyQueues
from services.indexer.query.pull.pull_response import PullBody
from services.indexer.query.pull.pulled import AnswerLimits, Pulled
from services.indexer.query.pull.queue_pull import QueuePull
from services.indexer.query.schema.query_arguments import PullLimits
from tests.built_store import BuiltStore
from tests.unit.query.served_app import WAIT_S, ServedApp
from tidemark.errors import StoreError
from tidemark.read.file_run import FileRange
from tidemark.store.originals.topics import TopicConfig, TopicsFile

LONG_MS = 30_000


class Answer(NamedTuple):
    """The parts, as "queue: messages > next offset", and the number of queues that were looked at."""

    parts: list[str]
    looked_at: int


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    """Three messages in queue 0, two in queue 1, none in queue 2."""
    store = BuiltStore(tmp_path)
    store.topic("orders", queues=3)
    for number in range(5):
        store.append("orders", b"x", {"TAGS": "A"}, queue_id=number % 2)
    store.publish()
    return store


@pytest.fixture
def service(built: BuiltStore) -> Iterator[ServedApp]:
    with ServedApp(built, query_recheck_ms=20) as served:
        yield served


def make(pull: QueuePull, pulled: Pulled) -> PullBody:
    offsets = [int(offset) for part in pulled.result.parts for offset in part.messages["queue_offset"]]
    text = f"{pull.queue_id}: {offsets} > {pulled.result.next_offset}"
    return PullBody("text/plain", {}, [text.encode()])


def refuse(pull: QueuePull, error: StoreError) -> PullBody:
    return PullBody("text/plain", {}, [f"{pull.queue_id}: {type(error).__name__}".encode()])


def run(
    service: ServedApp,
    *offsets: str | int,
    meanwhile: Callable[[], object] | None = None,
    make: Make = make,
    **asked: Any,
) -> Answer:
    """Pull from queue 0, 1, … at these offsets; *meanwhile* is called once the request waits."""

    async def receive() -> Message:
        await asyncio.sleep(WAIT_S)
        return {"type": "http.disconnect"}

    async def pull() -> Answer:
        state = service.state
        limits = AnswerLimits.of(PullLimits(**asked), state.settings, whole_records=False)
        pulls = [QueuePull(state, "orders", number, str(offset), limits) for number, offset in enumerate(offsets)]
        many = ManyQueues(state, pulls, limits, make, refuse)
        async with asyncio.timeout(WAIT_S):
            task = asyncio.create_task(many.run(Request({"type": "http"}, receive)))
            if meanwhile is not None:
                while not state.watcher.waiting:
                    assert not task.done()
                    await asyncio.sleep(0)
                meanwhile()
            parts = await task
        return Answer(
            [b"".join(one for one in part.pieces if not isinstance(one, FileRange)).decode() for part in parts],
            many.looked_at,
        )

    return service.run(pull())


def test_each_queue_with_messages_has_a_part(service: ServedApp) -> None:
    assert run(service, 1, 0, 0) == (["0: [1, 2] > 3", "1: [0, 1] > 2"], 3)


def test_a_queue_at_its_end_has_a_part_only_for_a_named_offset(service: ServedApp) -> None:
    """The caller does not know the number behind a name."""
    assert run(service, 3, "latest", "earliest").parts == ["1: [] > 2", "2: [] > 0"]


def test_the_limit_on_messages_is_of_all_queues(service: ServedApp) -> None:
    assert run(service, 0, 0, 0, max_messages=4) == (["0: [0, 1, 2] > 3", "1: [0] > 1"], 2)


def test_the_limit_on_bytes_is_of_all_queues(service: ServedApp) -> None:
    """The first queue has used it up."""
    assert run(service, 0, 0, 0, max_bytes=1) == (["0: [0] > 1"], 1)


def test_a_refused_queue_is_a_part_and_the_others_are_answered(service: ServedApp) -> None:
    assert run(service, 99, 1, 0, 0).parts == ["0: OffsetOutOfRangeError", "1: [1] > 2", "3: QueueIllegalError"]


def test_a_message_in_one_of_the_queues_ends_the_wait(service: ServedApp, built: BuiltStore) -> None:
    def publish() -> None:
        built.append("orders", queue_id=2)
        built.publish()

    assert run(service, 3, 2, 0, wait_ms=LONG_MS, meanwhile=publish).parts == ["2: [0] > 1"]


def test_a_cursor_that_skipped_messages_of_other_tags_is_a_part(service: ServedApp) -> None:
    """Otherwise the service would read the skipped messages again for each request."""
    assert run(service, 0, 2, tag=["B"], wait_ms=1).parts == ["0: [] > 3"]


def test_a_wait_that_timed_out_has_no_parts(service: ServedApp) -> None:
    assert run(service, 3, 2, 0, wait_ms=1) == ([], 3)


def test_a_stopping_service_answers_with_the_available_messages(service: ServedApp) -> None:
    assert run(service, 3, 2, wait_ms=LONG_MS, meanwhile=service.state.watcher.stop).parts == []


def test_a_topic_deleted_between_two_queues_of_a_request_is_not_found(service: ServedApp, built: BuiltStore) -> None:
    """The tombstones were read before; without them the queue's missing files would be an empty queue."""

    def delete_after(pull: QueuePull, pulled: Pulled) -> PullBody:
        if "orders" in built.topics:
            built.delete_topic("orders")
            built.drop_queues("orders")
        return make(pull, pulled)

    assert run(service, 0, 1, make=delete_after).parts == ["0: [0, 1, 2] > 3", "1: TopicNotFoundError"]


def test_a_topic_deleted_before_a_request_is_not_found(service: ServedApp, built: BuiltStore) -> None:
    assert run(service, 0, 0).looked_at == 2
    built.delete_topic("orders")
    assert run(service, 0, 0).parts == ["0: TopicNotFoundError", "1: TopicNotFoundError"]


def test_a_request_checks_the_topics_once_for_all_its_queues(
    service: ServedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each queue costs two system calls."""
    run(service, 0, 0, 0)
    looks = 0
    topics = TopicsFile.topics

    def counted(file: TopicsFile) -> dict[str, TopicConfig]:
        nonlocal looks
        looks += 1
        return topics(file)

    monkeypatch.setattr(TopicsFile, "topics", counted)
    run(service, 0, 0, 0)
    assert looks == 1
