"""Futures that are completed together behave as concurrent.futures' own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor

import pytest

from tidemark.client.producer.shared_future import Completion, SharedFuture


@pytest.fixture
def completion() -> Completion[int]:
    return Completion()


def three(completion: Completion[int]) -> list[SharedFuture[int]]:
    return [completion.new() for _ in range(3)]


def test_a_shared_future_has_the_fields_of_a_future(completion: Completion[int]) -> None:
    future = completion.new()
    for name in vars(Future()):
        assert hasattr(future, name), name


def test_a_result_is_made_when_it_is_asked_for(completion: Completion[int]) -> None:
    futures, asked = three(completion), list[int]()

    def result_of(number: int) -> int:
        asked.append(number)
        return 10 + number

    completion.set_results(result_of)
    assert all(future.done() for future in futures)
    assert asked == []
    assert futures[1].result() == 11
    assert asked == [1]


def test_a_future_is_completed_once(completion: Completion[int]) -> None:
    first, second, _ = three(completion)
    first.set_exception(OSError("down"))
    with pytest.raises(InvalidStateError):
        first.set_result(1)
    with pytest.raises(OSError, match="down"):
        first.result()
    assert not second.done()


def test_futures_share_their_state_with_the_objects_before(completion: Completion[int]) -> None:
    before = three(completion)
    after = completion.futures()
    after[0].set_result(1)
    after[1].set_exception(OSError("down"))
    assert before[0].result(0) == 1
    assert isinstance(before[1].exception(0), OSError)
    assert not before[2].done()


def test_results_are_assigned_in_creation_order(completion: Completion[int]) -> None:
    futures = three(completion)
    assert not any(future.done() for future in futures)
    completion.set_results([1, 2, 3].__getitem__)
    assert [future.result() for future in futures] == [1, 2, 3]
    assert [future.exception() for future in futures] == [None, None, None]


def test_an_exception_for_all(completion: Completion[int]) -> None:
    futures = three(completion)
    completion.set_exception(OSError("down"))
    for future in futures:
        with pytest.raises(OSError, match="down"):
            future.result()


def test_set_results_wakes_every_waiter(completion: Completion[int]) -> None:
    futures = three(completion)
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(future.result, 10) for future in futures]
        completion.set_results([1, 2, 3].__getitem__)
        assert [one.result(10) for one in waiting] == [1, 2, 3]


def test_completing_one_future_does_not_end_the_waits_of_the_others(completion: Completion[int]) -> None:
    first, second, _ = three(completion)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(second.result, 10)
        first.set_result(1)
        with pytest.raises(TimeoutError):
            waiting.result(0.2)
        second.set_result(2)
        assert waiting.result(10) == 2


def test_a_wait_ends_at_its_timeout(completion: Completion[int]) -> None:
    future = completion.new()
    with pytest.raises(TimeoutError):
        future.result(0.01)
    with pytest.raises(TimeoutError):
        future.exception(0)


def test_callbacks_see_all_futures_done(completion: Completion[int]) -> None:
    futures = three(completion)
    seen: list[int] = []
    futures[0].add_done_callback(lambda _: seen.extend(future.result(0) for future in futures))
    completion.set_results([1, 2, 3].__getitem__)
    futures[2].add_done_callback(lambda done: seen.append(done.result(0)))
    assert seen == [1, 2, 3, 3]


def test_a_callback_may_wait_for_a_thread_that_reads_another_result(completion: Completion[int]) -> None:
    futures = three(completion)
    seen: list[int] = []

    def ask(_: Future[int]) -> None:
        asker = threading.Thread(target=lambda: seen.append(futures[1].result(5)))
        asker.start()
        asker.join(5)

    futures[0].add_done_callback(ask)
    completion.set_results([1, 2, 3].__getitem__)
    assert seen == [2]


def test_wait_and_as_completed_accept_a_shared_future(completion: Completion[int]) -> None:
    futures: list[Future[int]] = [*three(completion)]
    timer = threading.Timer(0.05, completion.set_results, [[1, 2, 3].__getitem__])
    timer.start()
    assert {future.result() for future in concurrent.futures.as_completed(futures, 10)} == {1, 2, 3}
    assert concurrent.futures.wait(futures, 10).not_done == set()
    timer.join()


async def awaited(future: Future[int]) -> int:
    return await asyncio.wait_for(asyncio.wrap_future(future), 10)


def test_asyncio_accepts_a_shared_future(completion: Completion[int]) -> None:
    futures = three(completion)
    timer = threading.Timer(0.05, completion.set_results, [[1, 2, 3].__getitem__])
    timer.start()
    assert asyncio.run(awaited(futures[1])) == 2
    timer.join()


def test_a_shared_future_cannot_be_cancelled(completion: Completion[int]) -> None:
    future, *_ = three(completion)
    assert not future.cancel()
    completion.set_results([1, 2, 3].__getitem__)
    assert future.result() == 1
