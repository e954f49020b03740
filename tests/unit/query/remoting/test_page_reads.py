"""Where pages of a connection are read, and how many at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

from services.indexer.query.remoting.page_reads import MOST_AT_ONCE, PageReads
from services.indexer.query.state.read_threads import ReadThreads
from tests.unit.query.remoting.desk import FakeConnection
from tests.waiting import until_async
from tidemark.read.cached import NotCachedError, is_cached_only


@pytest.fixture
def threads() -> Iterator[ReadThreads]:
    pool = ReadThreads(2 * MOST_AT_ONCE)
    yield pool
    pool.close()


def on_disk() -> int:
    """Return the thread that reads, which is not the event loop."""
    if is_cached_only():
        raise NotCachedError
    return threading.get_ident()


def test_a_page_in_memory_is_read_on_the_event_loop(threads: ReadThreads) -> None:
    async def read() -> tuple[int, int]:
        reads = PageReads(threads, FakeConnection(), asyncio.Semaphore(0))
        cached = await reads.read_in_place(threading.get_ident)
        reads = PageReads(threads, FakeConnection(), asyncio.Semaphore(1))
        return cached, await reads.read_in_place(on_disk)

    here, there = asyncio.run(read())
    assert here == threading.get_ident() != there


@pytest.mark.parametrize("name", ["read", "read_in_place"])
def test_no_page_is_read_while_the_client_is_full(threads: ReadThreads, name: str) -> None:
    async def read() -> tuple[list[int], int]:
        client = FakeConnection()
        client.is_full = True
        reads, done = PageReads(threads, client, asyncio.Semaphore(1)), list[int]()
        method: Callable[[Callable[[], None]], Awaitable[None]] = getattr(reads, name)
        waiting = asyncio.ensure_future(method(lambda: done.append(1)))
        await asyncio.sleep(0.05)
        before = list(done)
        client.is_full = False
        await asyncio.wait_for(waiting, 5)
        return before, len(done)

    assert asyncio.run(read()) == ([], 1)


def test_threads_read_a_few_pages_of_a_connection_at_once(threads: ReadThreads) -> None:
    async def read() -> int:
        turns, going, release = asyncio.Semaphore(MOST_AT_ONCE), list[int](), threading.Event()

        def slow() -> None:
            going.append(1)
            release.wait(5)

        pages = [
            asyncio.ensure_future(PageReads(threads, FakeConnection(), turns).read(slow))
            for _ in range(MOST_AT_ONCE + 2)
        ]
        await until_async(lambda: len(going) >= MOST_AT_ONCE)
        await asyncio.sleep(0.05)
        at_once = len(going)
        release.set()
        await asyncio.gather(*pages)
        assert len(going) == MOST_AT_ONCE + 2
        return at_once

    assert asyncio.run(read()) == MOST_AT_ONCE
