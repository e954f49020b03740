from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from starlette.requests import Request
from starlette.types import Message

from services.indexer.query.pull.pulled import AnswerLimits, Pulled
from services.indexer.query.pull.queue_pull import QueuePull
from services.indexer.query.pull.single_pull import Puller
from services.indexer.query.schema.query_arguments import PullLimits
from services.indexer.query.state.read_threads import ReadThreads
from services.indexer.query.state.watermark_watcher import Queues, Ready
from tests.built_store import BuiltStore
from tests.unit.query.served_app import WAIT_S, ServedApp
from tidemark.errors import OffsetOutOfRangeError, TopicNotFoundError
from tidemark.read.watermark import Watermark

T = TypeVar("T")
MESSAGES = 3
LONG_MS = 300_000  # longer than the test waits
Answer = tuple[list[int], int]  # offsets, next offset


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    store = BuiltStore(tmp_path)
    store.topic("orders")
    for number in range(MESSAGES):
        store.append("orders", b"x", {"TAGS": "AB"[number % 2]})
    store.publish()
    return store


@pytest.fixture
def service(built: BuiltStore) -> Iterator[ServedApp]:
    with ServedApp(built, query_recheck_ms=20, query_max_wait_ms=LONG_MS) as served:
        yield served


def answer_of(pulled: Pulled) -> Answer:
    offsets = [int(offset) for part in pulled.result.parts for offset in part.messages["queue_offset"]]
    return offsets, pulled.result.next_offset


def pull(
    service: ServedApp,
    offset: str,
    *,
    meanwhile: Callable[[], object] | None = None,
    **asked: Any,
) -> Answer:
    """Return the answer to one request; *meanwhile* is called once it waits."""

    async def receive() -> Message:
        await asyncio.sleep(WAIT_S)
        return {"type": "http.disconnect"}

    async def run() -> Answer:
        limits = AnswerLimits.of(PullLimits(**asked), service.state.settings, whole_records=False)
        wait = partial(service.state.watcher.wait_for_request, Request({"type": "http"}, receive))
        puller = Puller(service.state, QueuePull(service.state, "orders", 0, offset, limits), wait)
        async with asyncio.timeout(WAIT_S):
            task = asyncio.create_task(puller.run(answer_of))
            if meanwhile is not None:
                while not service.state.watcher.waiting:
                    assert not task.done()
                    await asyncio.sleep(0)
                meanwhile()
            return await task

    return service.run(run())


def test_a_waiting_pull_returns_available_messages_immediately(service: ServedApp) -> None:
    assert pull(service, "1", wait_ms=LONG_MS) == ([1, 2], MESSAGES)


def test_a_pull_that_does_not_wait_answers_an_empty_end(service: ServedApp) -> None:
    assert pull(service, "latest") == ([], MESSAGES)


def test_a_wait_ends_with_the_next_message(service: ServedApp, built: BuiltStore) -> None:
    def publish() -> None:
        built.append("orders")
        built.publish()

    assert pull(service, "latest", wait_ms=LONG_MS, meanwhile=publish) == ([MESSAGES], MESSAGES + 1)


def test_a_wait_by_tag_skips_messages_of_other_tags(service: ServedApp, built: BuiltStore) -> None:
    def publish() -> None:
        built.append("orders", b"other", {"TAGS": "A"})
        built.append("orders", b"wanted", {"TAGS": "C"})
        built.publish()

    answer = pull(service, "0", wait_ms=LONG_MS, tag=["C"], meanwhile=publish)
    assert answer == ([MESSAGES + 1], MESSAGES + 2)


def test_a_timed_out_wait_returns_the_cursor_after_messages_of_other_tags(service: ServedApp) -> None:
    assert pull(service, "0", wait_ms=1, tag=["C"]) == ([], MESSAGES)


def test_a_stopping_service_answers_with_the_available_messages(service: ServedApp) -> None:
    assert pull(service, "latest", wait_ms=LONG_MS, meanwhile=service.state.watcher.stop) == ([], MESSAGES)


def test_messages_of_a_look_between_read_and_wait_end_the_wait(built: BuiltStore) -> None:
    """The event loop has looked for other requests, while a thread read for this one."""

    async def run(service: ServedApp) -> Answer:
        state, watcher = service.state, service.state.watcher
        seen: list[int] = []

        def other(watermark: Watermark) -> bool:
            seen.append(watermark.physical_offset)
            return False

        class SlowReads(ReadThreads):
            async def read_in_place(self, function: Callable[[], T]) -> T:
                found = function()
                if built.next["orders", 0] == MESSAGES:
                    built.append("orders")
                    built.publish()
                    while seen[-1] < built.end:  # noqa: ASYNC110 - the code under test has no event to wait for
                        await asyncio.sleep(0.001)
                return found

        limits = AnswerLimits.of(PullLimits(max_messages=1, wait_ms=LONG_MS), state.settings, whole_records=False)
        pull = QueuePull(state, "orders", 0, str(MESSAGES), limits)

        def wait(ready: Ready, deadline: float, looks: int, queues: Queues) -> Awaitable[bool]:
            return watcher.wait(ready, LONG_MS, looks=looks, queues=queues)

        async with asyncio.timeout(5):  # long before a recheck
            waiting = asyncio.create_task(watcher.wait(other, LONG_MS))
            while not seen:  # noqa: ASYNC110 - the code under test has no event to wait for
                await asyncio.sleep(0)
            answer = await Puller(state, pull, wait, reads=SlowReads(1)).run(answer_of)
            waiting.cancel()
            return answer

    with ServedApp(built, query_recheck_ms=10_000, query_max_wait_ms=LONG_MS) as service:
        assert service.run(run(service)) == ([MESSAGES], MESSAGES + 1)


def test_a_topic_that_is_deleted_ends_the_wait(service: ServedApp, built: BuiltStore) -> None:
    with pytest.raises(TopicNotFoundError):
        pull(service, "latest", wait_ms=LONG_MS, meanwhile=lambda: built.delete_topic("orders"))


def test_an_offset_outside_the_queue_is_refused_without_a_wait(service: ServedApp) -> None:
    with pytest.raises(OffsetOutOfRangeError):
        pull(service, str(MESSAGES + 1), wait_ms=LONG_MS)
