"""Failures of a handler or an `on_error`: a message is never kept in progress for ever."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from tidemark.client.consumer import handler_pool as handling_module
from tidemark.client.consumer.handler_pool import Handling
from tidemark.client.consumer.retry_later import RetryLater
from tidemark.client.received_message import ReceivedMessage
from tidemark.errors import DiskFullError, ForbiddenError, MessageSizeExceededError, RequestConflictError, StoreError
from tidemark.status import status_of

MESSAGE = ReceivedMessage(
    "orders", 0, 7, b"body", None, (), {}, "id", "place", 0, 0, 0, 0, 0, 0, "127.0.0.1:1", "127.0.0.1:2"
)


def handle(
    handler: Callable[[ReceivedMessage], object],
    *,
    message: ReceivedMessage = MESSAGE,
    send_back: Mock | None = None,
    **how: object,
) -> tuple[Handling, Mock]:
    """Handle one message to completion."""
    send_back = send_back or Mock(spec=RetryLater)
    settings = {"workers": 1, "ordered": False, "max_attempts": 2, "on_error": None, "stop": threading.Event(), **how}
    handling = Handling(handler, send_back, **settings)  # type: ignore[arg-type]
    handling.begin([message])
    handling.drain(frozenset({message.queue}))
    handling.close()
    return handling, send_back


def fail(_: ReceivedMessage) -> None:
    raise RuntimeError("bad")


def test_a_message_whose_handler_fails_is_sent_back() -> None:
    handling, send_back = handle(fail)
    send_back.send.assert_called_once_with(MESSAGE)
    assert handling.first_unfinished() == {}


def test_an_exception_in_on_error_is_logged_and_the_message_is_still_sent_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def also_fail(*_: object) -> None:
        raise ValueError("worse")

    handling, send_back = handle(fail, on_error=also_fail)
    send_back.send.assert_called_once_with(MESSAGE)
    assert handling.first_unfinished() == {}
    assert "on_error raised an exception" in caplog.text


def test_a_handler_that_calls_sys_exit_counts_as_failed() -> None:
    """The exit must not end the worker thread silently."""
    failures: list[BaseException] = []
    handling, send_back = handle(lambda _: sys.exit(1), on_error=lambda _, error: failures.append(error))
    send_back.send.assert_called_once_with(MESSAGE)
    assert handling.first_unfinished() == {}
    assert [type(failure) for failure in failures] == [SystemExit]


@pytest.mark.parametrize("ordered", [False, True])
def test_a_message_stays_in_progress_while_dead_letters_are_refused(
    monkeypatch: pytest.MonkeyPatch, ordered: bool
) -> None:
    """The disk is full: the failure is reported and sending is retried; the message is committed once it is stored."""
    monkeypatch.setattr(handling_module, "_PAUSE_S", 0.01)
    refused, told = threading.Event(), []
    stop = threading.Event()
    send_back = Mock(spec=RetryLater)

    def refuse(_: ReceivedMessage) -> None:
        if send_back.send.call_count == 3:
            refused.set()
        raise DiskFullError("the disk is full")

    send_back.send.side_effect = refuse
    handling = Handling(
        fail,
        send_back,
        workers=1,
        ordered=ordered,
        max_attempts=1,
        on_error=lambda _, error: told.append(type(error)),
        stop=stop,
    )
    handling.begin([MESSAGE])
    assert refused.wait(10)
    handling.close()
    assert handling.first_unfinished() == {MESSAGE.queue: MESSAGE.queue_offset}
    assert told[:3] == [RuntimeError, DiskFullError, DiskFullError]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    "refusal", [RequestConflictError("used"), MessageSizeExceededError("large"), ValueError("bug")]
)
def test_a_message_whose_send_back_fails_permanently_becomes_a_dead_letter(
    refusal: Exception, *, ordered: bool
) -> None:
    told: list[type] = []
    send_back = Mock(spec=RetryLater)
    send_back.send.side_effect = refusal
    handling, _ = handle(
        fail, send_back=send_back, ordered=ordered, max_attempts=1, on_error=lambda _, error: told.append(type(error))
    )
    send_back.send.assert_called_once()
    (_, reason), _ = send_back.bury.call_args
    assert reason == (status_of(refusal).reason if isinstance(refusal, StoreError) else "INTERNAL")
    assert handling.first_unfinished() == {}
    assert told == [RuntimeError, type(refusal)]


def test_a_message_that_dead_letters_refuse_too_is_skipped_with_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    send_back = Mock(spec=RetryLater)
    send_back.send.side_effect = send_back.bury.side_effect = ForbiddenError("no right")
    handling, _ = handle(fail, send_back=send_back)
    assert handling.first_unfinished() == {}
    assert "message skipped" in caplog.text
    assert "orders queue 0 offset 7" in caplog.text


def test_a_retry_of_a_foreign_topic_is_forwarded_and_not_handled() -> None:
    retry = MESSAGE.replace(topic="%RETRY%g", properties={"RETRY_TOPIC": "returns"})
    handled: list[ReceivedMessage] = []
    handling, send_back = handle(handled.append, message=retry, topics=frozenset({"orders"}))
    send_back.forward.assert_called_once_with(retry)
    assert (handled, handling.first_unfinished()) == ([], {})


def test_a_retry_of_its_own_topic_is_handled() -> None:
    retry = MESSAGE.replace(topic="%RETRY%g", properties={"RETRY_TOPIC": "orders"})
    handled: list[ReceivedMessage] = []
    _, send_back = handle(handled.append, message=retry, topics=frozenset({"orders"}))
    send_back.forward.assert_not_called()
    assert [message.topic for message in handled] == ["orders"]
