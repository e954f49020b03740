from __future__ import annotations

import threading
import time
from concurrent.futures import Future, InvalidStateError
from functools import partial
from typing import cast

import pytest

from tidemark.client.send_result import SendResult
from tidemark.client.wire.driven_future import DrivenFuture

RESULT = cast(SendResult, "an answer")
LONG_S = 20.0


def no_drive(_: Future[SendResult]) -> None:
    """Read nothing, as if another thread read."""


def note(called: list[int], number: int, _: Future[SendResult]) -> None:
    called.append(number)


def later(call: object, *arguments: object) -> threading.Thread:
    def run() -> None:
        time.sleep(0.05)
        call(*arguments)  # type: ignore[operator]

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_result_without_a_timeout_reads_the_answer() -> None:
    driven: list[Future[SendResult]] = []

    def drive(future: Future[SendResult]) -> None:
        driven.append(future)
        future.set_result(RESULT)

    future = DrivenFuture(drive)
    assert not future.done()
    assert future.result() is RESULT
    assert (future.done(), future.exception(), driven) == (True, None, [future])
    assert future.result() is RESULT
    assert len(driven) == 1


def test_a_result_with_a_timeout_does_not_read() -> None:
    future = DrivenFuture(lambda _: pytest.fail("it reads"))
    with pytest.raises(TimeoutError):
        future.result(0.01)
    with pytest.raises(TimeoutError):
        future.exception(0.01)
    later(future.set_result, RESULT).join()
    assert future.result(0.01) is RESULT


def test_all_waiting_threads_get_the_answer_that_another_thread_reads() -> None:
    future = DrivenFuture(no_drive)
    results: list[SendResult] = []
    threads = [threading.Thread(target=lambda: results.append(future.result())) for _ in range(3)]
    for thread in threads:
        thread.start()
    later(future.set_result, RESULT).join()
    for thread in threads:
        thread.join(LONG_S)
    assert results == [RESULT] * 3


def test_an_exception_is_raised_each_time_and_holds_no_reference_to_the_future() -> None:
    future = DrivenFuture(no_drive)
    error = ValueError("refused")
    later(future.set_exception, error)
    for _ in range(2):
        with pytest.raises(ValueError, match="refused") as raised:
            future.result()
        assert raised.value is error
    assert future.exception() is error
    trace, frames = error.__traceback__, []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    assert not any(frame.f_locals.get("self") is future for frame in frames)


def test_callbacks_are_called_once_in_order_and_at_once_when_done(caplog: pytest.LogCaptureFixture) -> None:
    """An exception of one is logged."""
    future = DrivenFuture(no_drive)
    called: list[int] = []
    future.add_done_callback(lambda done: called.append(1 if done is future else 0))
    future.add_done_callback(lambda _: 1 / 0)
    future.add_done_callback(lambda done: called.append(2 if done.result() is RESULT else 0))
    assert called == []
    future.set_result(RESULT)
    assert called == [1, 2]
    future.add_done_callback(lambda _: called.append(3))
    assert called == [1, 2, 3]
    assert "exception calling callback" in caplog.text


def test_a_callback_that_is_added_while_the_future_completes_is_called_once() -> None:
    for _ in range(300):
        future = DrivenFuture(no_drive)
        called: list[int] = []
        thread = threading.Thread(target=future.set_result, args=(RESULT,))
        thread.start()
        for number in range(20):
            future.add_done_callback(partial(note, called, number))
        thread.join()
        assert sorted(called) == list(range(20))


def test_a_future_is_completed_once_and_not_cancelled() -> None:
    future = DrivenFuture(no_drive)
    assert future.set_running_or_notify_cancel()
    assert not future.cancel()
    assert (future.cancelled(), future.running()) == (False, True)
    future.set_result(RESULT)
    with pytest.raises(InvalidStateError):
        future.set_result(RESULT)
    with pytest.raises(InvalidStateError):
        future.set_exception(ValueError())
    assert future.result() is RESULT
    assert not future.running()
    assert "done=True" in repr(future)
