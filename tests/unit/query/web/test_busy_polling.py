"""Polling after answers: it lasts for its window, and ends where it does not pay."""

from __future__ import annotations

import asyncio
import time

import pytest

from services.indexer.query.web import busy_polling
from services.indexer.query.web.busy_polling import BusyPolling
from tests.waiting import until_async

WINDOW_US = 5_000  # longer than a process waits for its turn on a busy machine


class Turns:
    """Counts the turns of a running event loop that polls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._call_soon = asyncio.get_running_loop().call_soon
        monkeypatch.setattr(asyncio.get_running_loop(), "call_soon", self._counted)

    def _counted(self, callback: object, *arguments: object, **named: object) -> object:
        self.count += getattr(callback, "__name__", "") == "_poll"
        return self._call_soon(callback, *arguments, **named)  # type: ignore[arg-type]


def turns_after(polling: BusyPolling, monkeypatch: pytest.MonkeyPatch, *, arrives: bool = False) -> tuple[int, float]:
    """Return the polling turns after an answer, and the seconds until the last one."""

    async def answer() -> tuple[int, float]:
        turns = Turns(monkeypatch)
        began = time.monotonic()
        polling.answered(asyncio.get_running_loop())
        if arrives:
            await asyncio.sleep(0)
            polling.arrived()
        await until_async(lambda: not polling._is_polling)
        return turns.count, time.monotonic() - began

    return asyncio.run(answer())


def test_the_loop_stays_awake_for_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, seconds = turns_after(BusyPolling(WINDOW_US), monkeypatch)
    assert turns > 1
    assert seconds >= WINDOW_US / 1e6


def test_a_request_ends_the_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, _ = turns_after(BusyPolling(60_000_000), monkeypatch, arrives=True)
    assert turns <= 3


def test_polling_that_does_not_pay_becomes_rare_until_a_request_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    polling = BusyPolling(WINDOW_US)
    most, rarely = busy_polling._MOST_MISSES, busy_polling._RARELY
    polled = [turns_after(polling, monkeypatch)[0] > 0 for _ in range(most + 2 * rarely)]
    assert polled == [True] * most + ([False] * (rarely - 1) + [True]) * 2
    for _ in range(rarely):
        turns_after(polling, monkeypatch, arrives=True)
    assert all(turns_after(polling, monkeypatch)[0] > 0 for _ in range(most))


def test_without_a_window_the_loop_is_never_kept_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    assert turns_after(BusyPolling(0), monkeypatch, arrives=True)[0] == 0
