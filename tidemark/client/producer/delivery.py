"""SendTracker: tracks a producer's messages until they are acknowledged or given up, also at the end of the program."""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import os
import threading
import time
from concurrent.futures import Future
from multiprocessing import util
from typing import TYPE_CHECKING, Protocol

from tidemark.client.send_result import SendResult

if TYPE_CHECKING:
    from tidemark.client.producer.writer_pool import Writers

_log = logging.getLogger("tidemark.client.producer")


class Holds(Protocol):
    """Messages that are held back for a while, as by an Accumulator."""

    def flush(self) -> None:
        """Send the held messages."""

    def close(self) -> None:
        """Send the held messages, and accept no more."""

    def held_messages(self) -> int:
        """Return the number of held messages."""


class SendTracker:
    """Waits for everything that one producer has sent, counts failures, and closes its connections.

    timeout_s  how long `close` waits; also the wait at the end of a program that did not close its producer
    """

    def __init__(self, writers: Writers, *, timeout_s: float) -> None:
        self._writers = writers
        self._held: Holds | None = None
        self._timeout_s = timeout_s
        self._lock = threading.Lock()  # guards the four fields below: futures complete in several threads
        self._failed = 0  # messages that failed since the last flush
        self._failed_oneway = 0  # of these, the messages whose failure no future reports
        self._last_error: BaseException | None = None
        self._is_open = False

    def hold(self, held: Holds) -> None:
        """Also flush and close *held*."""
        self._held = held

    def open(self) -> None:
        """Wait for this producer at the end of the program, because it has sent messages."""
        if not self._is_open:
            self._is_open = True
            _add_open(self)

    def watch(self, future: Future[SendResult], messages: int, *, oneway: bool) -> None:
        """Count *messages* as failed if *future* fails."""

        def count(done: Future[SendResult]) -> None:
            error = done.exception()
            if error is not None:
                self.fail(messages, error, oneway=oneway)

        future.add_done_callback(count)

    def count_one(self, done: Future[SendResult]) -> None:
        """Count one message as failed if its future, which is done, has failed."""
        error = done.exception()
        if error is not None:
            self.fail(1, error)

    def fail(self, messages: int, error: BaseException, *, oneway: bool = False) -> None:
        """Count *messages* that failed with *error*."""
        with self._lock:
            self._failed += messages
            self._failed_oneway += messages if oneway else 0
            self._last_error = error

    def seen(self, messages: int) -> None:
        """Subtract *messages* from the failures: their caller got the exception."""
        with self._lock:
            self._failed -= messages

    def flush(self, timeout_s: float | None) -> bool:
        """Wait until everything is acknowledged or has failed.

        Return True if that happened in time, and no message failed since the last `flush`.
        """
        in_time = self._wait(timeout_s)
        failed, _, _ = self._take_failures()
        return in_time and failed <= 0

    def close(self) -> bool:
        """Wait at most `timeout_s` for answers, close the connections, and log the number of messages given up.

        Return True if no message failed since the last `flush`.
        """
        _open.discard(self)
        before = self._failed
        deadline = time.monotonic() + self._timeout_s
        if self._held is not None:
            self._held.close()
        self._writers.close(deadline)
        failed, oneway, error = self._take_failures()
        _report(max(failed - before, oneway), error, "the producer was closed")
        return failed <= 0

    def end(self, began: float) -> None:
        """Wait until `timeout_s` after *began*, when the program ended, and log the number of messages given up."""
        self._wait(max(0.0, began + self._timeout_s - time.monotonic()))
        unanswered = self._writers.unanswered()
        messages = sum(pending.messages for pending in unanswered)
        if self._held is not None:
            messages += self._held.held_messages()
        failed, _, error = self._take_failures()
        if unanswered:
            error = error or unanswered[0].expiry()
        _report(failed + messages, error, "the program ended without Producer.close()")

    def _wait(self, timeout_s: float | None) -> bool:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        if self._held is not None:
            self._held.flush()
        return self._writers.flush(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def _take_failures(self) -> tuple[int, int, BaseException | None]:
        with self._lock:
            taken = self._failed, self._failed_oneway, self._last_error
            self._failed = self._failed_oneway = 0
            self._last_error = None
            return taken


def _report(messages: int, error: BaseException | None, when: str) -> None:
    if messages > 0:
        reason = "no answer in time" if error is None else f"{type(error).__name__}: {error}"
        _log.error("%d messages were given up when %s; the last reason: %s", messages, when, reason)


_open: set[SendTracker] = set()  # those that have sent messages and were not closed
_finalizers: set[int] = set()  # ids of the processes in which multiprocessing calls _end_all


def _add_open(delivery: SendTracker) -> None:
    _open.add(delivery)
    if multiprocessing.parent_process() is not None and os.getpid() not in _finalizers:
        _finalizers.add(os.getpid())
        util.Finalize(None, _end_all, exitpriority=0)  # a multiprocessing child does not run atexit functions


def _end_all() -> None:
    """Wait for every producer that was not closed; their timeouts all start now."""
    began = time.monotonic()
    for delivery in list(_open):
        delivery.end(began)
    _open.clear()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_open.clear)
