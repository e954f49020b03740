"""Waking of requests that wait for a watermark."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.requests import Request

from services.indexer.query.state import watermark_watcher as module
from services.indexer.query.state.departure import DEPARTURE, Departure
from services.indexer.query.state.watermark_watcher import WatermarkWatcher
from tests.built_store import BuiltStore
from tidemark.errors import InFlightLimitError
from tidemark.read.store_reader import StoreReader
from tidemark.read.watermark import Watermark
from tidemark.store.mapped_file_queue import file_name
from tidemark.store.marks import Marks
from tidemark.store.originals.tombstones import Tombstone, save_tombstones
from tidemark.store.storage import DiskStorage


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    return BuiltStore(tmp_path / "store")


@asynccontextmanager
async def watching(
    built: BuiltStore, *, recheck_ms: int = 5_000, max_waiting: int = 3, max_waiting_per_client: int | None = None
) -> AsyncIterator[WatermarkWatcher]:
    watcher = WatermarkWatcher(
        StoreReader(built.root),
        recheck_ms=recheck_ms,
        max_waiting=max_waiting,
        max_waiting_per_client=max_waiting_per_client,
    )
    watcher.start()
    yield watcher
    watcher.close()


async def when_both_were_woken(built: BuiltStore) -> tuple[float, float]:
    """Two requests wait for more than 100 and more than 200; 150 comes after 0.2 s, 250 after 0.6 s.

    Return the times when each woke.
    """
    async with watching(built) as watcher:
        began = time.monotonic()

        async def wait(offset: int) -> float:
            assert await watcher.wait(lambda watermark: watermark.physical_offset > offset, 10)
            return time.monotonic() - began

        threading.Timer(0.2, built.marks.publish, (0, 150)).start()
        threading.Timer(0.6, built.marks.publish, (0, 250)).start()
        near, far = await asyncio.gather(wait(100), wait(200))
        assert watcher.waiting == 0
        return near, far


def test_a_publication_wakes_only_the_requests_it_serves(built: BuiltStore) -> None:
    """A publication wakes the request that it serves, long before a recheck would."""
    near, far = asyncio.run(when_both_were_woken(built))
    assert 0.2 <= near < 0.55
    assert 0.6 <= far < 4


def test_without_inotify_the_watcher_polls(built: BuiltStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> None:
        raise OSError("too many of them")

    monkeypatch.setattr(module, "FileWatch", none_left)
    near, far = asyncio.run(when_both_were_woken(built))
    assert 0.2 <= near < 0.55
    assert 0.6 <= far < 4


def test_marks_created_during_a_wait_are_noticed(tmp_path: Path) -> None:
    """The query service may start first; it notices a pipeline that starts later."""

    async def first_message() -> bool:
        store = BuiltStore(tmp_path / "store", marked=False)
        async with watching(store, recheck_ms=50) as watcher:
            waiting = asyncio.create_task(watcher.wait(lambda watermark: watermark.physical_offset > 0, 10))
            await asyncio.sleep(0.2)
            path = store.root / "tidemark" / "indexer" / "marks"
            Marks.open_to_write(path, DiskStorage(), shards=1, term=0).publish(0, 10)
            return await waiting

    assert asyncio.run(first_message())


def test_a_condition_that_already_holds_is_not_waited_for(built: BuiltStore) -> None:
    """The watermark rose between the caller's read and the wait."""

    async def wait() -> float:
        async with watching(built) as watcher:
            built.marks.publish(0, 10)
            began = time.monotonic()
            assert await watcher.wait(lambda watermark: watermark.physical_offset >= 10, 10)
            return time.monotonic() - began

    assert asyncio.run(wait()) < 2


def test_a_wait_ends_at_its_timeout(built: BuiltStore) -> None:
    async def wait() -> None:
        async with watching(built) as watcher:
            assert not await watcher.wait(lambda _: False, 0.1)
            assert watcher.waiting == 0

    asyncio.run(wait())


def test_a_condition_that_the_caller_has_checked_is_checked_again_only_after_another_look(built: BuiltStore) -> None:
    checked: list[Watermark] = []

    def ready(watermark: Watermark) -> bool:
        checked.append(watermark)
        return False

    async def wait() -> list[int]:
        async with watching(built) as watcher:
            await watcher.wait(ready, 0.01)  # the first one looks at the marks
            counts = []
            for looks in (watcher.looks, watcher.looks - 1, None):
                checked.clear()
                await watcher.wait(ready, 0.01, looks=looks)
                counts.append(len(checked))
            return counts

    assert asyncio.run(wait()) == [0, 1, 1]


def test_a_look_since_the_callers_check_may_have_found_the_condition_true(built: BuiltStore) -> None:
    async def wait() -> float:
        seen: list[int] = []

        def other(watermark: Watermark) -> bool:
            seen.append(watermark.physical_offset)
            return False

        async with watching(built) as watcher:
            waiting = asyncio.create_task(watcher.wait(other, 10))
            while not seen:  # noqa: ASYNC110 - the watcher reports only to its waiters
                await asyncio.sleep(0)
            looks = watcher.looks
            built.marks.publish(0, 10)
            while seen[-1] < 10:  # noqa: ASYNC110 - the watcher reports only to its waiters
                await asyncio.sleep(0.001)
            began = time.monotonic()
            assert await watcher.wait(lambda watermark: watermark.physical_offset >= 10, 10, looks=looks)
            waiting.cancel()
            return time.monotonic() - began

    assert asyncio.run(wait()) < 2


class Requests:
    """Requests that wait for one queue each, and are never ready.

    checks  how often each was checked
    answer  of each check; None: it is refused
    """

    def __init__(self, watcher: WatermarkWatcher, places: list[tuple[str, int]]) -> None:
        self.answer: bool | None = False
        self.checks = dict.fromkeys(places, 0)
        self.tasks = [asyncio.create_task(watcher.wait(self._ready(place), 10, queues=[place])) for place in places]

    def _ready(self, place: tuple[str, int]) -> Callable[[Watermark], bool | None]:
        def ready(_: Watermark) -> bool | None:
            self.checks[place] += 1
            return self.answer

        return ready

    async def checked_after(
        self, watcher: WatermarkWatcher, change: Callable[[], object], looks: int = 1
    ) -> set[tuple[str, int]]:
        """Return the requests that are checked at the next *looks* looks, after *change*."""
        await asyncio.sleep(0)
        end = watcher.looks + looks
        self.checks = dict.fromkeys(self.checks, 0)
        change()
        while watcher.looks < end:  # noqa: ASYNC110 - the watcher reports only to its waiters
            await asyncio.sleep(0.001)
        return {place for place, count in self.checks.items() if count}


async def checked(built: BuiltStore, change: Callable[[], object]) -> tuple[set[tuple[str, int]], int]:
    """Return which of 30 requests are checked after *change*, and their number."""
    places = [*(("orders", number) for number in range(25)), *(("%LMQ%light", number) for number in range(5))]
    async with watching(built, max_waiting=100) as watcher:
        requests = await primed(built, watcher, places)
        found = await requests.checked_after(watcher, change)
        for task in requests.tasks:
            task.cancel()
    return found, len(places)


async def primed(built: BuiltStore, watcher: WatermarkWatcher, places: list[tuple[str, int]]) -> Requests:
    """Return waiting requests after a look at records of a queue for which none of them waits."""
    built.topic("orders", queues=UNWATCHED + 1)
    publish(built, UNWATCHED)
    requests = Requests(watcher, places)
    await requests.checked_after(watcher, lambda: publish(built, UNWATCHED))
    return requests


def publish(built: BuiltStore, *queue_ids: int) -> None:
    for queue_id in queue_ids:
        built.append("orders", queue_id=queue_id)
    built.publish()


UNWATCHED = 25  # a queue
PLACES = [("orders", number) for number in range(64)]
LIGHT = {("%LMQ%light", number) for number in range(5)}  # their units point at records of other topics


def test_only_the_requests_for_the_queues_of_new_records_are_checked(built: BuiltStore) -> None:
    """A check of each of a thousand waiting requests takes longer than the answers."""
    found, _ = asyncio.run(checked(built, lambda: publish(built, 3, 4, 3)))
    assert found == {("orders", 3), ("orders", 4)} | LIGHT


def test_a_request_that_refuses_a_check_is_checked_again_with_the_next_records(built: BuiltStore) -> None:
    """A request for many queues refuses a check shortly after the last one."""

    async def both(answer: bool | None) -> set[tuple[str, int]]:
        async with watching(built, max_waiting=100) as watcher:
            requests = await primed(built, watcher, [("orders", number) for number in range(25)])
            requests.answer = answer
            await requests.checked_after(watcher, lambda: publish(built, 3))
            found = await requests.checked_after(watcher, lambda: publish(built, 4))
            for task in requests.tasks:
                task.cancel()
            return found

    assert asyncio.run(both(None)) == {("orders", 3), ("orders", 4)}
    assert asyncio.run(both(False)) == {("orders", 4)}


def test_records_that_cannot_be_read_may_concern_any_request(built: BuiltStore) -> None:
    def publish_damaged() -> None:
        written = built.append("orders", queue_id=3)
        built.write_log(written.physical_offset + 4, b"\1\2\3\4")
        built.publish()

    found, count = asyncio.run(checked(built, publish_damaged))
    assert len(found) == count


def test_a_recheck_after_the_deletion_of_a_topic_checks_every_request(built: BuiltStore) -> None:
    """The request's topic may be the deleted one. The same holds for files of the log that have expired."""

    def delete() -> None:
        stones = [Tombstone("others", 0, {})]
        save_tombstones(built.root / "tidemark" / "writer" / "tombstones.json", stones, DiskStorage())

    async def checked_after_deletion() -> set[tuple[str, int]]:
        async with watching(built, recheck_ms=50, max_waiting=100) as watcher:
            requests = Requests(watcher, PLACES)
            await requests.checked_after(watcher, lambda: None)
            return await requests.checked_after(watcher, delete, looks=2)

    assert asyncio.run(checked_after_deletion()) == {*PLACES}


def test_a_recheck_checks_every_request_if_the_files_of_the_log_contradict_each_other(built: BuiltStore) -> None:
    """Their reads report it."""

    def contradict() -> None:
        (built.root / "commitlog" / file_name(StoreReader(built.root).log.known.end)).write_bytes(b"short")

    async def checked_after() -> list[set[tuple[str, int]]]:
        built.topic("orders", queues=len(PLACES))
        built.append("orders")
        built.publish()
        async with watching(built, recheck_ms=50, max_waiting=100) as watcher:
            requests = Requests(watcher, PLACES)
            await requests.checked_after(watcher, lambda: None)
            found = [await requests.checked_after(watcher, contradict, looks=2)]
            return [*found, await requests.checked_after(watcher, lambda: None, looks=2)]

    assert asyncio.run(checked_after()) == [{*PLACES}] * 2


def test_rechecks_without_a_change_of_the_store_divide_the_requests_among_them(built: BuiltStore) -> None:
    """Each recheck of a thousand requests would hold up the answers of all others."""

    async def most_at_once() -> int:
        """Return the most requests of one look, until each was looked at."""
        most = 0
        found: set[tuple[str, int]] = set()
        async with watching(built, recheck_ms=5, max_waiting=100) as watcher:
            requests = Requests(watcher, PLACES)
            await requests.checked_after(watcher, lambda: None)
            async with asyncio.timeout(30):
                while found != {*PLACES}:  # on a busy machine a look between two calls is not seen
                    checked = await requests.checked_after(watcher, lambda: None)
                    most, found = max(most, len(checked)), found | checked
        return most

    assert asyncio.run(most_at_once()) < len(PLACES) / 2


@pytest.mark.parametrize("is_over_before", [False, True])
def test_a_disconnect_ends_a_wait(built: BuiltStore, is_over_before: bool) -> None:
    async def wait() -> bool:
        departure = Departure()
        request = Request({"type": "http", "extensions": {DEPARTURE: departure}})
        async with watching(built) as watcher:
            if is_over_before:
                departure.happen()
            waiting = asyncio.create_task(watcher.wait_for_request(request, lambda _: False, time.monotonic() + 60))
            await asyncio.sleep(0.1)
            assert waiting.done() is is_over_before
            departure.happen()
            async with asyncio.timeout(30):
                return await waiting

    assert asyncio.run(wait()) is False


def test_an_ended_wait_leaves_nothing_at_its_connection(built: BuiltStore) -> None:
    """A connection may have many requests, one after the other."""

    async def wait() -> None:
        departure = Departure()
        request = Request({"type": "http", "extensions": {DEPARTURE: departure}})
        async with watching(built) as watcher:
            assert not await watcher.wait_for_request(request, lambda _: False, time.monotonic() + 0.01)
        assert not departure._callbacks

    asyncio.run(wait())


def test_waits_above_the_limit_are_refused(built: BuiltStore) -> None:
    async def four() -> None:
        async with watching(built) as watcher:
            await asyncio.gather(*(watcher.wait(lambda _: False, 0.3) for _ in range(4)))

    with pytest.raises(InFlightLimitError):
        asyncio.run(four())


def test_a_stop_wakes_all_waiters(built: BuiltStore) -> None:
    """The stop may come from a thread or a signal handler."""

    async def stopped() -> None:
        async with watching(built) as watcher:
            threading.Timer(0.1, watcher.stop).start()
            assert await watcher.wait(lambda _: False, 10)
            assert not await watcher.wait(lambda _: False, 10)

    asyncio.run(stopped())


async def refused_with_other_clients(built: BuiltStore) -> tuple[bool, bool]:
    """Let two requests of one client wait; return whether a third one, and one of another client, are refused."""
    async with watching(built, max_waiting_per_client=2) as watcher:
        waiting = [asyncio.create_task(watcher.wait(lambda _: False, 5, client="a")) for _ in range(2)]
        await asyncio.sleep(0)

        async def is_refused(client: str) -> bool:
            try:
                await watcher.wait(lambda _: False, 0.01, client=client)
            except InFlightLimitError as error:
                return error.limit == 2
            return False

        outcome = await is_refused("a"), await is_refused("b")
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert not await is_refused("a")
        return outcome


def test_one_client_cannot_take_all_waiting_places(built: BuiltStore) -> None:
    """Each client has its own limit; a place is free again when its request ends."""
    assert asyncio.run(refused_with_other_clients(built)) == (True, False)
