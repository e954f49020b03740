"""Positions over real HTTP: the effect of an exception, a cancellation, a start or a reset on the next message."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from tests.integration.conftest import QUEUES, Served
from tests.integration.consumer.test_consumer import take
from tidemark.cli.reading import message_pages as pulling
from tidemark.cli.reading.queue_places import PlaceKind, StartPlace
from tidemark.client import AsyncConsumer, Consumer, Query, ReceivedMessage, TopicQueue
from tidemark.client.consumer import queue_assignment as assigned
from tidemark.client.consumer.group_member import GroupMember
from tidemark.client.consumer.handout import Handout
from tidemark.errors import ForkedProcessError, OffsetOutOfRangeError

Q0 = TopicQueue("orders", 0)
BODIES = (b'{"n": 0}', b'{"n": 1}', b"not json", b'{"n": 3}', b'{"n": 4}')


def on_record(served: Served, group: str) -> dict[TopicQueue, int]:
    answer = httpx.get(f"{served.url}/v1/groups/{group}")
    if answer.status_code == 404:
        return {}
    return {TopicQueue(one["topic"], one["queue_id"]): one["offset"] for one in answer.json()["queues"]}


def is_small(message: ReceivedMessage) -> bool:
    return bool(message.json()["n"] >= 0)


# ── exceptions ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_messages_around_one_for_which_where_raises_are_handed_out(served: Served) -> None:
    served.put(*BODIES)
    got: list[bytes] = []
    errors = 0
    with Consumer("orders", group="g", url=served.url, where=is_small, auto_commit_interval_s=0.0) as consumer:
        while errors < 3:
            try:
                got += [message.body for message in consumer.poll(0.2)]
            except ValueError:
                errors += 1
        assert consumer.position(Q0) == 2
    assert got == [body for body in BODIES if body != b"not json"]
    assert on_record(served, "g")[Q0] == 2


def test_a_where_that_raises_once_loses_nothing_and_keeps_the_order(served: Served) -> None:
    served.put(*(b"%d" % number for number in range(6)))
    failures = [ConnectionError("the database is away")]

    def is_wanted(message: ReceivedMessage) -> bool:
        if message.queue_offset == 3 and failures:
            raise failures.pop()
        return True

    got: list[int] = []
    with Consumer("orders", url=served.url, where=is_wanted) as consumer:
        while len(got) < 6:
            with contextlib.suppress(ConnectionError):
                got += [message.queue_offset for message in consumer.poll(1)]
    assert got == list(range(6))


def test_a_queue_for_which_where_raises_does_not_hold_back_others(served: Served) -> None:
    served.put(b"not json", b"{", queue_id=0)
    served.put(b'{"n": 1}', queue_id=1)
    got: list[bytes] = []
    with Consumer("orders", url=served.url, where=is_small) as consumer:
        for _ in range(4):
            with contextlib.suppress(ValueError):
                got += [message.body for message in consumer.poll(0.2)]
    assert got == [b'{"n": 1}']


def test_a_seek_past_the_message_for_which_where_raises_ends_the_errors(served: Served) -> None:
    served.put(*BODIES)
    got: list[bytes] = []
    with Consumer("orders", group="g", url=served.url, where=is_small) as consumer:
        while len(got) < 4:
            try:
                got += [message.body for message in consumer.poll(0.2)]
            except ValueError:
                consumer.seek(Q0, 3)
    assert got == [body for body in BODIES if body != b"not json"]
    assert on_record(served, "g")[Q0] == 5


@pytest.mark.parametrize("as_table", [False, True])
def test_a_keyboard_interrupt_in_a_poll_moves_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch, *, as_table: bool
) -> None:
    served.put(b"a", b"b")
    with Consumer("orders", url=served.url) as consumer:
        original = next(iter(consumer._stores)).buffer._take

        def interrupted(handout: Handout, *arguments: Any) -> None:
            original(handout, *arguments)
            if handout.messages:
                raise KeyboardInterrupt

        def interrupted_join(_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(next(iter(consumer._stores)).buffer, "_take", interrupted)
        monkeypatch.setattr("tidemark.client.rest.arrow_page.join_pages", interrupted_join)
        with pytest.raises(KeyboardInterrupt):
            consumer.poll_table(20) if as_table else consumer.poll(20)
        monkeypatch.undo()
        assert consumer.position(Q0) in (0, None)
        assert [message.body for message in take(consumer, 2)] == [b"a", b"b"]


def test_an_exception_after_the_first_page_of_a_table_leaves_that_page(served: Served) -> None:
    """The second queue's offset does not exist: its error comes with a later call."""
    served.put(b"a", b"b", queue_id=0)
    served.put(b"c", queue_id=1)
    queues = [Q0, TopicQueue("orders", 1)]
    rows: list[int] = []
    errors = 0
    with Consumer(queues=queues, url=served.url) as consumer:
        consumer.seek(queues[1], 1_000)
        while not (rows and errors):
            try:
                table = consumer.poll_table(0.5)
                rows += [] if table is None else table.column("queue_offset").to_pylist()
            except OffsetOutOfRangeError:
                errors += 1
    assert rows == [0, 1]


def test_an_on_assigned_that_raises_is_called_again_before_anything_is_handed_out(served: Served) -> None:
    served.put(*(b"%d" % number for number in range(5)))
    failures = [ConnectionError("no offsets now")]

    def seek(consumer: Consumer, queues: frozenset[TopicQueue]) -> None:
        if failures:
            raise failures.pop()
        for queue in queues:
            consumer.seek(queue, 4 if queue == Q0 else "latest")

    with Consumer("orders", group="g", url=served.url, on_assigned=seek) as consumer:
        with pytest.raises(ConnectionError):
            consumer.poll(1)
        assert [message.body for message in take(consumer, 1)] == [b"4"]


@pytest.mark.parametrize("from_files", [False, True])
@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_retries_ignore_the_filters_and_start_of_a_consumer(served: Served, start: Any, *, from_files: bool) -> None:
    """Retries have passed the filters before, or must be forwarded to other members."""
    served.store.topic("%RETRY%g")
    served.put(b"retry", topic="%RETRY%g", TAGS="other")
    served.put(b"filtered out", TAGS="other")
    source: dict[str, Any] = {"store": served.store.root} if from_files else {}
    with Consumer("orders", group="g", url=served.url, tag="own", where={"n": "1"}, start=start, **source) as consumer:
        member = next(iter(consumer._stores)).assigned
        assert isinstance(member, GroupMember)
        member.add_retry_topics()
        assert [message.body for message in take(consumer, 2, timeout_s=2)] == [b"retry"]


# ── cancellation ────────────────────────────────────────────────────────────────────────────────────────────────────


async def cancel_when_taken(consumer: AsyncConsumer, call: Awaitable[object]) -> None:
    """Cancel *call* after the consumer's thread has taken messages, and before its task has received them."""
    task = asyncio.ensure_future(call)
    await asyncio.sleep(0)
    consumer._thread.submit(int).result(20)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


POLLS: list[Callable[[AsyncConsumer], Awaitable[object]]] = [
    lambda consumer: consumer.poll(10),
    lambda consumer: consumer.poll_table(10),
    lambda consumer: anext(aiter(consumer)),
]


@pytest.mark.parametrize("auto_commit", [False, True])
@pytest.mark.parametrize("call", POLLS)
def test_messages_of_a_cancelled_call_are_neither_committed_nor_lost(
    served: Served, call: Callable[[AsyncConsumer], Awaitable[object]], *, auto_commit: bool
) -> None:
    served.put(b"a", b"b")

    async def read() -> list[bytes]:
        settings: dict[str, Any] = {"group": "g", "url": served.url, "auto_commit": auto_commit}
        async with AsyncConsumer(queues=[Q0], **settings) as consumer:
            await cancel_when_taken(consumer, call(consumer))
            await consumer.commit()
        assert on_record(served, "g").get(Q0, 0) == 0
        async with AsyncConsumer(queues=[Q0], **settings) as consumer:
            await cancel_when_taken(consumer, call(consumer))
            return [message.body for message in await consumer.poll(10)]

    assert asyncio.run(read()) == [b"a", b"b"]


def test_a_cancelled_poll_delivers_nothing_from_before_a_later_seek(served: Served) -> None:
    served.put(*(b"%d" % number for number in range(5)))

    async def read() -> list[bytes]:
        async with AsyncConsumer(queues=[Q0], url=served.url) as consumer:
            await cancel_when_taken(consumer, consumer.poll(10))
            await consumer.seek(Q0, 3)
            return [message.body for message in await consumer.poll(10)]

    assert asyncio.run(read()) == [b"3", b"4"]


def test_a_cancelled_poll_ends_immediately_in_its_thread(served: Served) -> None:
    """A commit after it does not wait for the rest of the poll's time."""

    async def commit() -> None:
        async with AsyncConsumer(queues=[Q0], url=served.url, group="g") as consumer:
            await consumer.poll(0.1)
            polling = asyncio.create_task(consumer.poll(300))
            await asyncio.sleep(0.1)
            polling.cancel()
            await asyncio.wait_for(consumer.commit(), 60)

    asyncio.run(commit())


def test_an_iteration_continues_after_a_cancelled_step(served: Served) -> None:
    async def read() -> list[bytes]:
        async with AsyncConsumer(queues=[Q0], url=served.url) as consumer:
            messages = aiter(consumer)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(messages), 0.2)
            served.put(b"a", b"b")
            return [(await anext(messages)).body, (await anext(messages)).body]

    assert asyncio.run(read()) == [b"a", b"b"]


def test_an_async_consumer_closes_twice(served: Served) -> None:
    async def close() -> None:
        consumer = AsyncConsumer(queues=[Q0], url=served.url)
        await consumer.poll(0.1)
        await asyncio.gather(consumer.close(), consumer.close())
        await consumer.close()
        with pytest.raises(ValueError, match="closed"):
            await consumer.poll(0.1)

    asyncio.run(close())


# ── starts and resets ───────────────────────────────────────────────────────────────────────────────────────────────


def test_start_latest_reads_a_new_queue_from_its_beginning(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assigned, "_TOPIC_AGE_S", 0.2)
    served.put(b"old")
    for group in (None, "g"):
        with Consumer("orders", group=group, url=served.url, start="latest", session_timeout_s=1.5) as consumer:
            consumer.poll(0.1)
            queue_id = len(consumer.assignment)
            served.store.topic("orders", queues=queue_id + 1)
            served.put(b"new", queue_id=queue_id)
            assert [message.body for message in take(consumer, 1)] == [b"new"]


def test_start_latest_reads_a_new_topic_from_its_beginning(served: Served) -> None:
    with Consumer(["orders", "later"], group="g", url=served.url, start="latest", session_timeout_s=1.5) as consumer:
        consumer.poll(0.1)
        served.store.topic("later", queues=1)
        served.put(b"first", b"second", topic="later")
        assert [message.body for message in take(consumer, 2)] == [b"first", b"second"]


def test_consume_follow_reads_a_new_queue_from_its_beginning(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling, "_NEW_QUEUES_S", 0.2)
    latest = StartPlace(PlaceKind.LATEST)
    served.put(b"old")
    with Query(served.url) as query:
        spans = pulling.spans_of(query, "orders", [], latest, None, follow=True)
        pages = pulling.follow_queues(query, "orders", spans, [], with_new_queues=True)
        served.store.topic("orders", queues=QUEUES + 1)
        served.put(b"new", queue_id=QUEUES)
        assert [message["body"] for message in next(pages)] == ["new"]
        pages.close()  # type: ignore[attr-defined]


def test_a_queue_newer_than_its_group_is_read_from_its_beginning(served: Served) -> None:
    """The first member has committed the starts of all older queues."""
    served.put(b"old")
    with Consumer("orders", group="g", url=served.url, start="latest", auto_commit=False) as consumer:
        consumer.poll(0.1)
    served.store.topic("orders", queues=QUEUES + 1)
    served.put(b"new", queue_id=QUEUES)
    with Consumer("orders", group="g", url=served.url, start="latest") as consumer:
        assert [message.body for message in take(consumer, 1)] == [b"new"]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("from_files", [False, True])
def test_a_start_offset_is_committed_before_the_first_message(served: Served, *, named: bool, from_files: bool) -> None:
    served.put(b"old")
    what = {"queues": [Q0]} if named else {"topics": "orders"}
    source: dict[str, Any] = {"store": served.store.root} if from_files else {}
    settings: dict[str, Any] = {
        **what,
        **source,
        "group": "g",
        "url": served.url,
        "start": "latest",
        "auto_commit": False,
    }
    with Consumer(**settings) as consumer:
        assert consumer.poll(0.1) == []
    assert on_record(served, "g")[Q0] == 1
    served.put(b"while it was away")
    with Consumer(**settings) as consumer:
        assert [message.body for message in take(consumer, 1)] == [b"while it was away"]


def test_a_reset_offset_is_committed_immediately(served: Served) -> None:
    served.put(b"a", b"b")
    with Consumer(queues=[Q0], group="g", url=served.url, out_of_range="latest", auto_commit=False) as consumer:
        consumer.seek(Q0, 1_000)
        assert consumer.poll(1) == []
    assert on_record(served, "g")[Q0] == 2


def test_a_seek_is_committed_immediately_with_auto_commit_otherwise_with_the_next_commit(served: Served) -> None:
    served.put(*(b"%d" % number for number in range(5)))
    with Consumer("orders", group="g", url=served.url) as consumer:
        consumer.seek(Q0, 3)
        assert on_record(served, "g")[Q0] == 3
        consumer.seek(Q0, "earliest")
        assert on_record(served, "g")[Q0] == 0
    with Consumer("orders", group="h", url=served.url, auto_commit=False) as consumer:
        consumer.seek(Q0, 3)
        assert Q0 not in on_record(served, "h")
        consumer.commit()
        assert on_record(served, "h")[Q0] == 3


# ── forks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_consumer_created_before_a_fork_is_refused_in_the_child(served: Served) -> None:
    served.put(b"a")
    with Consumer("orders", group="g", url=served.url) as consumer:
        consumer.poll(1)
        pid = os.fork()
        if pid == 0:  # the child answers by its exit status, and runs none of pytest's code
            status = 1
            try:
                with contextlib.suppress(ForkedProcessError):
                    consumer.poll(1)
                    os._exit(2)
                with contextlib.suppress(ForkedProcessError):
                    consumer.commit()
                    os._exit(3)
                with contextlib.suppress(ForkedProcessError):
                    consumer.pull("orders", 0, 0)
                    os._exit(4)
                consumer.close()
                status = 0
            finally:
                os._exit(status)
        deadline = time.monotonic() + 60
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert os.waitstatus_to_exitcode(ended[1]) == 0
        served.put(b"b")
        assert [message.body for message in take(consumer, 1)] == [b"b"]
