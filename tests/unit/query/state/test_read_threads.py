from __future__ import annotations

import asyncio
import threading

import pytest

from services.indexer.query.state.read_threads import ReadThreads, steady
from tidemark.read.cached import NotCachedError, is_cached_only
from tidemark.read.unit_run import UnitsGoneError
from tidemark.tracing.request_id import begin_request, current_request_id


class Expiring:
    """A look that finds its files gone for the first *times* calls."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self) -> str:
        if self.left:
            self.left -= 1
            raise UnitsGoneError("expired")
        return "found"


def test_a_read_whose_files_expire_is_repeated() -> None:
    assert steady(Expiring(2)) == "found"


def test_a_read_whose_files_always_expire_raises() -> None:
    with pytest.raises(UnitsGoneError):
        steady(Expiring(1_000_000))


def test_a_read_runs_on_a_thread_within_the_request() -> None:
    async def read() -> tuple[int, str | None]:
        begin_request("order-17")
        return await ReadThreads(1).read(lambda: (threading.get_ident(), current_request_id()))

    thread, request_id = asyncio.run(read())
    assert (thread != threading.get_ident(), request_id) == (True, "order-17")


def test_a_read_in_place_stays_on_the_event_loop_if_everything_is_in_memory() -> None:
    assert asyncio.run(ReadThreads(1).read_in_place(threading.get_ident)) == threading.get_ident()


def test_a_read_in_place_moves_to_a_thread_if_it_needs_the_disk() -> None:
    def look() -> int:
        if is_cached_only():
            raise NotCachedError
        return threading.get_ident()

    assert asyncio.run(ReadThreads(1).read_in_place(look)) != threading.get_ident()
