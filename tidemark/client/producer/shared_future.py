"""SharedFuture: futures that are completed together, and so share what makes a Future expensive.

A `concurrent.futures.Future` is a dozen objects, most of them its own condition's. Where a thousand are waiting,
Python's garbage collector takes as long over them as everything else that a small send costs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_PENDING, _FINISHED = "PENDING", "FINISHED"  # as concurrent.futures spells them


class Completion(Generic[T]):
    """Futures with one condition, completed all at once."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self.futures: list[SharedFuture[T]] = []

    def new(self) -> SharedFuture[T]:
        """One more future."""
        future: SharedFuture[T] = SharedFuture(self._condition)
        self.futures.append(future)
        return future

    def set_results(self, results: Iterable[T]) -> None:
        """Complete them, in the order they were made: who waits is woken once, when all of them are done."""
        self._complete(zip(self.futures, results, strict=True))

    def set_exception(self, error: BaseException) -> None:
        """Fail all of them."""
        self._complete((future, error) for future in self.futures)

    def _complete(self, outcomes: Iterable[tuple[SharedFuture[T], T | BaseException]]) -> None:
        with self._condition:
            for future, outcome in outcomes:
                future.finish(outcome)
            self._condition.notify_all()
        for future in self.futures:
            future.call_back()


class SharedFuture(Future[T]):
    """A Future that cannot be cancelled: to tell each one that it runs costs as much as to complete it.

    Its fields are `concurrent.futures.Future`'s own, so that `wait`, `as_completed` and asyncio take it for one; only
    who waits must look whether it was this one that was completed.
    """

    def __init__(self, condition: threading.Condition) -> None:  # not Future's: it makes a condition
        self._condition = condition
        self._state = _PENDING
        self._result: T | None = None
        self._exception: BaseException | None = None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Any] = []

    def cancel(self) -> bool:
        """It is on its way."""
        return False

    def result(self, timeout: float | None = None) -> T:
        """As Future's."""
        self._wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """As Future's."""
        self._wait(timeout)
        return super().exception(0)

    def _wait(self, timeout: float | None) -> None:
        if self._state == _FINISHED:
            return
        with self._condition:
            if not self._condition.wait_for(lambda: self._state == _FINISHED, timeout):
                raise TimeoutError

    def finish(self, outcome: T | BaseException) -> None:
        """What `set_result` and `set_exception` do but waking and calling back. With the condition held."""
        if isinstance(outcome, BaseException):
            self._exception = outcome
        else:
            self._result = outcome
        self._state = _FINISHED
        for waiter in self._waiters:
            waiter.add_exception(self) if self._exception is not None else waiter.add_result(self)

    def call_back(self) -> None:
        """Call who asked for it. Without the condition."""
        if self._done_callbacks:
            self._invoke_callbacks()  # type: ignore[attr-defined]
