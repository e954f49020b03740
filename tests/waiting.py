"""Waiting for a condition that another thread, process or task brings about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from tidemark.client import Producer
from tidemark.errors import DeadlineExceededError, StoreError

LONG_S = 120.0
_LOOK_EVERY_S = 0.01

T = TypeVar("T")
Refusal = TypeVar("Refusal", bound=StoreError)


def until(
    condition: Callable[[], T | None],
    what: str = "the condition holds",
    timeout_s: float = LONG_S,
    *,
    found: Callable[[], str] | None = None,
) -> T:
    """Wait until *condition* returns something true, and return it.

    what   names the condition for the failure after *timeout_s*
    found  describes the state for the failure
    """
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} within {timeout_s:g} s{'' if found is None else f': {found()}'}"
        time.sleep(_LOOK_EVERY_S)
    return value


def refusal(address: str, topic: str, kind: type[Refusal]) -> Refusal:
    """Return the error with which the writer at *address* refuses an append, which a producer repeats until a deadline.

    A send whose last attempt has no answer by then is repeated, because its outcome is unknown.
    """

    def refused() -> Refusal | None:
        with Producer(address, timeout_s=2) as producer:
            try:
                producer.send(topic, b"refused")
            except kind as error:
                return error
            except DeadlineExceededError:
                return None
        raise AssertionError("the append was accepted")

    return until(refused, f"{address} refuses an append")


async def until_async(condition: Callable[[], object]) -> None:
    """Let the event loop run until *condition* holds."""
    async with asyncio.timeout(LONG_S):
        while not condition():  # noqa: ASYNC110 - the code under test has no event to wait for
            await asyncio.sleep(0.001)
