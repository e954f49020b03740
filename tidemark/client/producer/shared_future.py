"""SharedFuture: futures of one batch, which share their state.

A `concurrent.futures.Future` consists of a dozen objects, and to complete it takes as long as a third of a small send.
Of these futures each is two references; all are completed at once, and a result is made when the program asks for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_PENDING, _FINISHED = "PENDING", "FINISHED"  # as concurrent.futures spells them


class _Observers(Generic[T]):
    """The waiters and callbacks of a future."""

    def __init__(self, future: SharedFuture[T]) -> None:
        self.future = future
        self.waiters: list[Any] = []  # of concurrent.futures.wait and as_completed
        self.callbacks: list[Any] = []


class Completion(Generic[T]):
    """Futures that are numbered from 0, in the order of their creation, and completed together."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.count = 0  # of the futures
        self._result_of: Callable[[int], T] | None = None
        self._error: BaseException | None = None
        self._own: dict[int, Future[T]] = {}  # outcomes of the futures that were completed one by one
        self._observers: dict[int, _Observers[T]] = {}  # few programs have any

    def new(self) -> SharedFuture[T]:
        """Add and return a future."""
        self.count += 1
        return SharedFuture(self, self.count - 1)

    def futures(self) -> list[SharedFuture[T]]:
        """Return the futures, as new objects with the same state."""
        return [SharedFuture(self, number) for number in range(self.count)]

    def set_results(self, result_of: Callable[[int], T]) -> None:
        """Complete the futures; *result_of* returns the result of a future by its number, at any time.

        A waiter is woken once, when all are done.
        """
        with self.condition:
            self._result_of = result_of
        self._notify(self._observers.values())

    def set_exception(self, error: BaseException) -> None:
        """Fail all futures."""
        with self.condition:
            self._error = error
        self._notify(self._observers.values())

    def complete_one(self, number: int, outcome: Future[T]) -> None:
        """Complete one future as *outcome* was. Raises InvalidStateError if it is done."""
        with self.condition:
            if self.is_done(number):
                raise InvalidStateError("the future is done")
            self._own[number] = outcome
        self._notify([self._observers[number]] if number in self._observers else [])

    def _notify(self, observers: Iterable[_Observers[T]]) -> None:
        """Wake waiters and call callbacks. Nothing is added to *observers*: the futures are done."""
        with self.condition:
            notified = list(observers)
            for one in notified:
                failed = one.future.exception(0) is not None
                for waiter in one.waiters:
                    waiter.add_exception(one.future) if failed else waiter.add_result(one.future)
            self.condition.notify_all()
        for one in notified:
            one.future._invoke_callbacks()  # type: ignore[attr-defined]

    def is_done(self, number: int) -> bool:
        """Return True if the future has its result or exception."""
        return self._result_of is not None or self._error is not None or number in self._own

    def result(self, number: int) -> T | None:
        """Return the result of a future; None if it has none."""
        if number in self._own:
            return None if self._own[number].exception() is not None else self._own[number].result()
        return None if self._result_of is None else self._result_of(number)

    def exception(self, number: int) -> BaseException | None:
        """Return the exception of a future; None if it has none."""
        return self._own[number].exception() if number in self._own else self._error

    def observers(self, future: SharedFuture[T], number: int) -> _Observers[T]:
        """Return the waiters and callbacks of *future*. The caller holds the condition."""
        return self._observers.setdefault(number, _Observers(future))


class SharedFuture(Future[T]):
    """A Future that cannot be cancelled: its message is in flight.

    It has the fields of `concurrent.futures.Future`, so that `wait`, `as_completed` and asyncio accept it. Because the
    condition is shared, a woken waiter must check whether its own future is done.
    """

    def __init__(self, completion: Completion[T], number: int) -> None:  # no super().__init__: it would create fields
        self._completion = completion
        self._number = number

    def done(self) -> bool:
        """Return True if the future has its result or exception."""
        return self._completion.is_done(self._number)

    def cancel(self) -> bool:
        """Return False: the message is in flight."""
        return False

    def result(self, timeout: float | None = None) -> T:
        """Return the result, as `Future.result` does."""
        result = self._completion.result(self._number)
        if result is not None:
            return result
        self._wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the exception, as `Future.exception` does."""
        self._wait(timeout)
        return self._completion.exception(self._number)

    def _wait(self, timeout: float | None) -> None:
        if self.done():
            return
        with self._completion.condition:
            if not self._completion.condition.wait_for(self.done, timeout):
                raise TimeoutError

    def set_result(self, result: T) -> None:
        """Complete this future alone. Raises InvalidStateError if it is done."""
        outcome: Future[T] = Future()
        outcome.set_result(result)
        self._completion.complete_one(self._number, outcome)

    def set_exception(self, exception: BaseException | None) -> None:
        """Fail this future alone. Raises InvalidStateError if it is done."""
        outcome: Future[T] = Future()
        outcome.set_exception(exception)
        self._completion.complete_one(self._number, outcome)

    # The fields of concurrent.futures.Future, as that module and asyncio read them.

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        return self._completion.condition

    @property
    def _state(self) -> str:  # type: ignore[override]
        return _FINISHED if self.done() else _PENDING

    @property
    def _result(self) -> T | None:  # type: ignore[override]
        return self._completion.result(self._number)

    @property
    def _exception(self) -> BaseException | None:  # type: ignore[override]
        return self._completion.exception(self._number)

    @property
    def _waiters(self) -> list[Any]:  # type: ignore[override]
        return self._completion.observers(self, self._number).waiters

    @property
    def _done_callbacks(self) -> list[Any]:
        return self._completion.observers(self, self._number).callbacks
