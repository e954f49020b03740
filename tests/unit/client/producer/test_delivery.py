from __future__ import annotations

import logging
import time
from concurrent.futures import Future
from typing import cast

import pytest

from tidemark.client import SendResult
from tidemark.client.producer.delivery import SendTracker
from tidemark.client.producer.writer_pool import Writers
from tidemark.client.wire.pending_batches import Pending
from tidemark.errors import DiskFullError, WriterUnreachableError
from tidemark.v1.commit_log_pb2 import AppendBatchRequest

FULL = DiskFullError("the disk is full")


def batch(messages: int = 1) -> Pending:
    return Pending(AppendBatchRequest(topic="t"), b"x", 1, 0.0, messages=messages)


class Streams:
    """Writers without connections, which have answered everything but *unanswered* messages."""

    def __init__(self, *unanswered: Pending) -> None:
        self._unanswered = unanswered
        self.is_closed = False

    def flush(self, timeout_s: float | None = None) -> bool:
        return not self._unanswered

    def unanswered(self) -> list[Pending]:
        return list(self._unanswered)

    def close(self, deadline: float) -> None:
        self.is_closed = True


class Held:
    """Messages that are held back, and fail when they are sent at the end."""

    def __init__(self, delivery: SendTracker, messages: int) -> None:
        self.delivery = delivery
        self.messages = messages
        self.flushes = 0

    def flush(self) -> None:
        self.flushes += 1

    def close(self) -> None:
        self.delivery.fail(self.messages, FULL)
        self.messages = 0

    def held_messages(self) -> int:
        return self.messages


def delivery(streams: Streams | None = None) -> SendTracker:
    return SendTracker(cast(Writers, streams or Streams()), timeout_s=5.0)


def failed_future() -> Future[SendResult]:
    future: Future[SendResult] = Future()
    future.set_exception(FULL)
    return future


def test_a_flush_reports_the_failures_since_the_last_one() -> None:
    made = delivery()
    assert made.flush(None)
    made.watch(failed_future(), 3, oneway=False)
    assert not made.flush(None)
    assert made.flush(None)


def test_a_flush_that_timed_out_returns_false() -> None:
    assert not delivery(Streams(batch())).flush(0.0)


def test_a_failure_that_its_caller_received_does_not_fail_the_flush() -> None:
    made = delivery()
    made.watch(failed_future(), 3, oneway=False)
    made.seen(3)
    assert made.flush(None)


def test_a_flush_sends_held_messages() -> None:
    made = delivery()
    held = Held(made, 2)
    made.hold(held)
    made.flush(None)
    assert held.flushes == 1


def test_closing_logs_abandoned_messages_and_closes_the_connections(caplog: pytest.LogCaptureFixture) -> None:
    streams = Streams()
    made = delivery(streams)
    made.hold(Held(made, 2))
    assert not made.close()
    assert streams.is_closed
    assert "2 messages were given up when the producer was closed" in caplog.text
    assert "DiskFullError: the disk is full" in caplog.text


def test_closing_does_not_log_failures_that_a_future_reported(caplog: pytest.LogCaptureFixture) -> None:
    """The program has the future; it still learns from the result that not everything was stored."""
    made = delivery()
    made.watch(failed_future(), 3, oneway=False)
    assert not made.close()
    assert caplog.text == ""


def test_closing_logs_failures_of_oneway_sends(caplog: pytest.LogCaptureFixture) -> None:
    """No future reports them."""
    made = delivery()
    made.watch(failed_future(), 3, oneway=True)
    assert not made.close()
    assert "3 messages were given up" in caplog.text


def test_program_exit_logs_failed_held_and_unanswered_messages(caplog: pytest.LogCaptureFixture) -> None:
    made = delivery(Streams(batch(messages=3), batch(messages=1)))
    made.hold(Held(made, 2))
    made.fail(1, FULL)
    with caplog.at_level(logging.ERROR, "tidemark.client.producer"):
        made.end(time.monotonic() - 60)
    assert "7 messages were given up when the program ended without Producer.close()" in caplog.text
    assert FULL.message in caplog.text


def test_the_reason_of_what_has_not_failed_yet_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The program may end before the deadline of its last messages."""
    unsent = batch()
    unsent.last_error = WriterUnreachableError("connection refused")
    with caplog.at_level(logging.ERROR, "tidemark.client.producer"):
        delivery(Streams(unsent)).end(time.monotonic() - 60)
    assert "WriterUnreachableError: connection refused" in caplog.text


def test_program_exit_without_a_loss_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    delivery().end(time.monotonic())
    assert caplog.text == ""
