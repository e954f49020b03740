"""Answers that an event loop reads, against a peer over real TCP."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from tests.unit.client.fake_writer import FakeWriter, refusal
from tests.unit.client.wire.remoting_peer import EndError, appending, peer
from tests.unit.client.wire.remoting_sends import LONG_S, batch, bodies, has_thread, send, send_on_loop, stream_to
from tidemark.client.wire.answer_reader import AnswerReader
from tidemark.errors import DeadlineExceededError
from tidemark.remoting.frame import Frame
from tidemark.v1.commit_log_pb2 import AppendStreamResponse

T = TypeVar("T")


def run(work: Callable[[], Awaitable[T]]) -> T:
    async def limited() -> T:
        async with asyncio.timeout(LONG_S):
            return await work()

    return asyncio.run(limited())


def once_then(writer: FakeWriter, first: Callable[[Frame], Any]) -> Callable[[Frame], Any]:
    """Return a function that answers the first frame with *first*, and the others properly."""
    proper, is_first = appending(writer), iter([True])
    return lambda frame: first(frame) if next(is_first, False) else proper(frame)


def end(frame: Frame) -> None:
    raise EndError


@pytest.fixture
def writer() -> FakeWriter:
    return FakeWriter()


def test_no_thread_takes_part_in_a_task_s_send(writer: FakeWriter) -> None:
    with peer(appending(writer)) as served, stream_to(served.address) as stream:
        send(stream, "connects")

        async def work() -> list[int]:
            return [(await send_on_loop(stream, f"{n}")).queue_offset for n in range(3)]

        assert run(work) == [1, 2, 3]
        assert not has_thread(stream)
    assert bodies(writer) == [b"connects", b"0", b"1", b"2"]


def test_the_first_send_connects_in_a_thread(writer: FakeWriter) -> None:
    """The loop is not blocked by a connection that takes long."""
    with peer(appending(writer)) as served, stream_to(served.address) as stream:
        assert run(lambda: send_on_loop(stream, "a")).queue_offset == 0
        assert has_thread(stream)


def test_tasks_each_get_their_own_answer(writer: FakeWriter) -> None:
    with peer(appending(writer)) as served, stream_to(served.address) as stream:
        send(stream, "connects")

        async def work() -> list[int]:
            return [
                one.queue_offset for one in await asyncio.gather(*(send_on_loop(stream, f"{n}") for n in range(100)))
            ]

        assert run(work) == list(range(1, 101))
        assert not has_thread(stream)


def test_a_task_and_a_thread_send_on_the_same_stream(writer: FakeWriter) -> None:
    with peer(appending(writer)) as served, stream_to(served.address) as stream:
        send(stream, "connects")

        async def work() -> set[int]:
            threads = [asyncio.to_thread(send, stream, f"thread {n}") for n in range(50)]
            tasks = [send_on_loop(stream, f"task {n}") for n in range(50)]
            return {one.queue_offset for one in await asyncio.gather(*threads, *tasks)}

        assert run(work) == set(range(1, 101))


def test_a_connection_that_ended_while_idle_is_replaced(writer: FakeWriter) -> None:
    with peer(appending(writer)) as served, stream_to(served.address) as stream:
        send(stream, "connects")

        async def work() -> list[int]:
            first = await send_on_loop(stream, "a")
            served.end_connections()
            await asyncio.sleep(0.05)
            assert stream._socket is None, "the loop has noticed it"
            second = await send_on_loop(stream, "b")
            third = await send_on_loop(stream, "c")
            return [first.queue_offset, second.queue_offset, third.queue_offset]

        assert run(work) == [1, 2, 3]
        assert served.accepted == 2


def test_a_batch_on_a_connection_that_ends_is_sent_again(writer: FakeWriter) -> None:
    with peer(appending(writer)) as served, stream_to(served.address) as stream:
        send(stream, "connects")
        served.answer = once_then(writer, end)
        assert run(lambda: send_on_loop(stream, "a")).queue_offset == 1
        assert served.accepted == 2
    assert bodies(writer) == [b"connects", b"a"]


def test_a_silent_writer_is_given_up_at_the_deadline(writer: FakeWriter) -> None:
    with peer(appending(writer)) as served, stream_to(served.address) as stream:
        send(stream, "connects")
        served.answer = once_then(writer, lambda _: None)

        async def work() -> float:
            began = time.monotonic()
            with pytest.raises(DeadlineExceededError):
                await send_on_loop(stream, "a", seconds=0.1)
            return time.monotonic() - began

        assert run(work) >= 0.1
        assert run(lambda: send_on_loop(stream, "b")).queue_offset == 1


def test_a_temporary_refusal_is_repeated(writer: FakeWriter) -> None:
    refused = iter([True])
    with peer(appending(writer)) as served, stream_to(served.address) as stream:
        send(stream, "connects")
        writer.on_entry = lambda entry: (
            AppendStreamResponse.Result(
                correlation_id=entry.correlation_id, error=refusal("IN_FLIGHT_LIMIT", retry_after_ms=20)
            )
            if next(refused, False)
            else None
        )
        assert run(lambda: send_on_loop(stream, "a")).queue_offset == 1


def test_a_cancelled_wait_leaves_the_batch_in_flight(writer: FakeWriter) -> None:
    release = threading.Event()
    proper = appending(writer)

    def late(frame: Frame) -> Frame | bytes | None:
        release.wait(LONG_S)
        return proper(frame)

    with peer(proper) as served, stream_to(served.address) as stream:
        send(stream, "connects")
        served.answer = late

        async def work() -> int:
            task = asyncio.create_task(send_on_loop(stream, "a"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            release.set()
            return (await send_on_loop(stream, "b")).queue_offset

        assert run(work) == 2
    assert bodies(writer) == [b"connects", b"a", b"b"]


def test_another_event_loop_reads_after_the_first_has_ended(writer: FakeWriter) -> None:
    with peer(appending(writer)) as served, stream_to(served.address) as stream:
        send(stream, "connects")
        assert [run(lambda: send_on_loop(stream, "a")).queue_offset for _ in range(3)] == [1, 1, 1], (
            "repeats of one batch"
        )
        assert not has_thread(stream)


def test_a_closed_stream_is_no_longer_watched(writer: FakeWriter) -> None:
    """A closed descriptor that is still watched could be another file's later."""
    with peer(appending(writer)) as served, stream_to(served.address) as stream:
        send(stream, "connects")

        async def work() -> None:
            await send_on_loop(stream, "a")
            connection = stream._socket
            assert connection is not None
            descriptor = connection.fileno()
            await asyncio.to_thread(stream.close, time.monotonic())
            await asyncio.sleep(0.01)
            assert not asyncio.get_running_loop().remove_reader(descriptor)
            assert connection.fileno() == -1

        run(work)


def test_a_batch_that_no_loop_reads_is_not_lost(writer: FakeWriter) -> None:
    """The loop ends while the batch is in flight; `flush` reads the answer."""
    with peer(appending(writer)) as served, stream_to(served.address) as stream:
        send(stream, "connects")

        async def begin() -> None:
            stream.submit(batch("a", future=stream.future(AnswerReader.LOOP)))

        run(begin)
        assert stream.flush(LONG_S)
    assert bodies(writer) == [b"connects", b"a"]
