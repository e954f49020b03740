from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from tests.unit.client.fake_service import GENEROUS_S, FakeService, serving
from tests.unit.client.received_messages import ORDERS
from tests.waiting import until
from tidemark.client import AsyncConsumer, Consumer
from tidemark.client.consumer.consumer_options import ConsumerOptions


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving() as made:
        made.add(ORDERS, b"a", b"b", b"c", b"d")
        yield made


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, GENEROUS_S))


def reader(service: FakeService, **settings: Any) -> AsyncConsumer:
    return AsyncConsumer(queues=[ORDERS], group="g", url=service.url, **settings)


async def poll(consumer: AsyncConsumer, most: int = 99) -> list[bytes]:
    return [message.body for message in await consumer.poll(GENEROUS_S, max_messages=most)]


async def poll_that_waits(service: FakeService, consumer: AsyncConsumer) -> asyncio.Task[list[bytes]]:
    """Return a poll that has asked the service for messages at the end of the queue."""
    pulls = len(service.paths("/messages"))
    task = asyncio.create_task(poll(consumer))
    await asyncio.to_thread(until, lambda: len(service.paths("/messages")) > pulls)
    return task


def test_the_async_consumer_accepts_the_keywords_of_the_consumer() -> None:
    keywords = inspect.signature(Consumer.__init__).parameters.keys() - {"self", "topics"}
    assert keywords == ConsumerOptions.__annotations__.keys()


def test_an_iteration_that_ends_early_leaves_the_next_message_to_the_next_iteration(service: FakeService) -> None:
    async def main() -> None:
        async with reader(service) as consumer:
            for expected in (b"a", b"b"):
                async for message in consumer:
                    assert message.body == expected
                    break
            assert await poll(consumer) == [b"c", b"d"]

    run(main())


def test_the_event_loop_runs_while_a_poll_waits(service: FakeService) -> None:
    async def main() -> None:
        async with reader(service, start="latest") as consumer:
            task = await poll_that_waits(service, consumer)
            service.add(ORDERS, b"e")
            assert await task == [b"e"]

    run(main())


def test_messages_of_a_cancelled_poll_are_returned_by_the_next_one(service: FakeService) -> None:
    """The thread has taken them by then, and the program has not received them."""

    async def main() -> None:
        async with reader(service) as consumer:
            take = consumer.consumer._take

            def take_and_cancel(*arguments: Any, **settings: Any) -> Any:
                handout = take(*arguments, **settings)
                loop.call_soon_threadsafe(task.cancel)
                return handout

            loop = asyncio.get_running_loop()
            consumer.consumer._take = take_and_cancel  # type: ignore[method-assign]
            task = asyncio.create_task(poll(consumer, 2))
            with pytest.raises(asyncio.CancelledError):
                await task
            consumer.consumer._take = take  # type: ignore[method-assign]
            await consumer.commit()
            assert service.offsets == {ORDERS: 0}
            assert await poll(consumer) == [b"a", b"b", b"c", b"d"]

    run(main())


def test_a_cancelled_waiting_poll_ends_immediately_and_hands_out_nothing(service: FakeService) -> None:
    async def main() -> None:
        async with reader(service, start="latest") as consumer:
            task = await poll_that_waits(service, consumer)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            service.add(ORDERS, b"e")
            assert await poll(consumer) == [b"e"]

    run(main())


def test_polls_of_several_tasks_share_the_messages(service: FakeService) -> None:
    async def main() -> None:
        async with reader(service) as consumer:
            polls = await asyncio.gather(*(poll(consumer, 1) for _ in range(4)))
        assert sorted(polls) == [[b"a"], [b"b"], [b"c"], [b"d"]]

    run(main())


def test_a_seek_moves_the_position_and_is_committed(service: FakeService) -> None:
    async def main() -> None:
        async with reader(service) as consumer:
            await poll(consumer)
            await consumer.seek(ORDERS, 2)
            assert service.offsets == {ORDERS: 2}
            assert await poll(consumer) == [b"c", b"d"]

    run(main())


def test_closing_ends_the_poll_of_another_task_with_no_messages(service: FakeService) -> None:
    async def main() -> None:
        consumer = reader(service, start="latest")
        task = await poll_that_waits(service, consumer)
        await asyncio.gather(consumer.close(), consumer.close())
        assert await task == []
        with pytest.raises(ValueError, match="closed"):
            await consumer.poll()

    run(main())


def test_a_block_that_fails_commits_nothing(service: FakeService) -> None:
    async def main() -> None:
        async with reader(service) as consumer:
            await poll(consumer)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(main())
    assert service.offsets == {}


def test_a_block_that_ends_commits_the_handed_out_messages(service: FakeService) -> None:
    async def main() -> None:
        async with reader(service) as consumer:
            await poll(consumer, 3)

    run(main())
    assert service.offsets == {ORDERS: 3}
