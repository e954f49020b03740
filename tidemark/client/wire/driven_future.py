"""LockedFuture, a future that takes fewer calls than `concurrent.futures.Future`, and DrivenFuture."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError

from tidemark.client.send_result import SendResult

_log = logging.getLogger("tidemark.client.wire")
Callback = Callable[[Future[SendResult]], object]


class LockedFuture(Future[SendResult]):
    """A future with a lock where `concurrent.futures.Future` has a condition, whose calls take a quarter of a send.

    Therefore `concurrent.futures.wait` and asyncio do not accept it. It cannot be cancelled: its batch is in flight.

    on_failure  functions that are called first when it fails, and not at all when it has a result
    """

    def __init__(self, on_failure: Sequence[Callback] = ()) -> None:  # no super().__init__: see above
        self._on_failure = on_failure
        self._lock = threading.Lock()
        self._is_done = False
        self._answer: SendResult | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callback] = []
        self._waiting: threading.Event | None = None  # set when done; None while no thread waits

    def done(self) -> bool:
        """Return True if the future has its result or exception."""
        return self._is_done

    def running(self) -> bool:
        """Return True until it is done."""
        return not self._is_done

    def cancel(self) -> bool:
        """Return False."""
        return False

    def cancelled(self) -> bool:
        """Return False."""
        return False

    def set_running_or_notify_cancel(self) -> bool:
        """Return True: it is not cancelled."""
        return True

    def result(self, timeout: float | None = None) -> SendResult:
        """Return the result, as `Future.result` does."""
        error = self.exception(timeout)
        if error is not None:
            try:
                raise error
            finally:
                del self, error  # otherwise the exception's traceback refers to itself
        assert self._answer is not None, "done without an exception"
        return self._answer

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the exception, as `Future.exception` does."""
        if not self._is_done:
            with self._lock:
                waiting = self._waiting = self._waiting or threading.Event()
                if self._is_done:
                    waiting.set()
            if not waiting.wait(timeout):
                raise TimeoutError
        return self._error

    def add_done_callback(self, fn: Callback) -> None:
        """Call *fn* when the future is done; at once if it is."""
        with self._lock:
            if not self._is_done:
                self._callbacks.append(fn)
                return
        self._call(fn)

    def set_result(self, result: SendResult) -> None:
        """Complete the future. Raises InvalidStateError if it is done."""
        self._complete(result, None)

    def set_exception(self, exception: BaseException | None) -> None:
        """Fail the future. Raises InvalidStateError if it is done."""
        self._complete(None, exception)

    def _complete(self, answer: SendResult | None, error: BaseException | None) -> None:
        with self._lock:
            if self._is_done:
                raise InvalidStateError("the future is done")
            self._answer, self._error = answer, error
            self._is_done = True
            waiting = self._waiting
        if waiting is not None:
            waiting.set()
        if error is not None:
            for callback in self._on_failure:
                self._call(callback)
        for callback in self._callbacks:
            self._call(callback)

    def _call(self, callback: Callback) -> None:
        try:
            callback(self)
        except Exception:  # as concurrent.futures does
            _log.exception("exception calling callback for %r", self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x} done={self._is_done}>"


class DrivenFuture(LockedFuture):
    """The future of a send whose caller waits for it at once: `result` reads the answer, in the caller's thread.

    drive  reads until the future that it gets is done, if no other thread reads
    """

    def __init__(self, drive: Callable[[Future[SendResult]], None], on_failure: Sequence[Callback] = ()) -> None:
        super().__init__(on_failure)
        self._drive = drive

    def result(self, timeout: float | None = None) -> SendResult:
        """Return the result, as `Future.result` does. Only a call without *timeout* reads."""
        if timeout is None and not self._is_done:
            self._drive(self)
        try:
            return super().result(timeout)
        finally:
            del self  # as in LockedFuture.result
