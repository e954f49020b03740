"""SharedFuture: futures that are completed together and share one condition.

A `concurrent.futures.Future` consists of a dozen objects, most of them its condition's. With a thousand pending ones,
Python's garbage collector takes as long for them as everything else that a small send costs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_PENDING, _FINISHED = "PENDING", "FINISHED"  # as concurrent.futures spells them


class Completion(Generic[T]):
    """Futures with one condition, which are completed all at once."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self.futures: list[SharedFuture[T]] = []

    def new(self) -> SharedFuture[T]:
        """Add and return a future."""
        future: SharedFuture[T] = SharedFuture(self._condition)
        self.futures.append(future)
        return future

    def set_results(self, results: Iterable[T]) -> None:
        """Complete the futures, in the order of their creation. A waiter is woken once, when all are done."""
        self._complete(zip(self.futures, results, strict=True))

    def set_exception(self, error: BaseException) -> None:
        """Fail all futures."""
        self._complete((future, error) for future in self.futures)

    def _complete(self, outcomes: Iterable[tuple[SharedFuture[T], T | BaseException]]) -> None:
        with self._condition:
            for future, outcome in outcomes:
                future.finish(outcome)
            self._condition.notify_all()
        for future in self.futures:
            future.call_back()


class SharedFuture(Future[T]):
    """A Future that cannot be cancelled: marking each one as running would cost as much as completing it.

    It has the fields of `concurrent.futures.Future`, so that `wait`, `as_completed` and asyncio accept it. Because the
    condition is shared, a woken waiter must check whether its own future is done.
    """

    def __init__(self, condition: threading.Condition) -> None:  # no super().__init__: it would create a condition
        self._condition = condition
        self._state = _PENDING
        self._result: T | None = None
        self._exception: BaseException | None = None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Any] = []

    def cancel(self) -> bool:
        """Return False: the message is in flight."""
        return False

    def result(self, timeout: float | None = None) -> T:
        """Return the result, as `Future.result` does."""
        self._wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the exception, as `Future.exception` does."""
        self._wait(timeout)
        return super().exception(0)

    def _wait(self, timeout: float | None) -> None:
        if self._state == _FINISHED:
            return
        with self._condition:
            if not self._condition.wait_for(lambda: self._state == _FINISHED, timeout):
                raise TimeoutError

    def finish(self, outcome: T | BaseException) -> None:
        """Set the outcome without waking waiters or calling callbacks. The caller holds the condition."""
        if isinstance(outcome, BaseException):
            self._exception = outcome
        else:
            self._result = outcome
        self._state = _FINISHED
        for waiter in self._waiters:
            waiter.add_exception(self) if self._exception is not None else waiter.add_result(self)

    def call_back(self) -> None:
        """Call the callbacks. The caller does not hold the condition."""
        if self._done_callbacks:
            self._invoke_callbacks()  # type: ignore[attr-defined]
