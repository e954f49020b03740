"""AsyncConsumer.consume and the other calls that a Consumer has, against real services."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from tidemark.client import AsyncConsumer, Consumer, Producer, ReceivedMessage
from tidemark.local.local_stack import LocalStack

pytestmark = [pytest.mark.integration]
GENEROUS_S = 60.0


def send(stack: LocalStack, topic: str, count: int) -> None:
    with Producer(stack.writer_address) as producer:
        for number in range(count):
            producer.send(topic, str(number), queue_id=number % 2)


def consumer_of(stack: LocalStack, topic: str) -> AsyncConsumer:
    return AsyncConsumer(topic, group=f"{topic}-group", url=stack.query_url)


async def committed(stack: LocalStack, topic: str) -> int:
    """Return how many messages of its first two queues the group has finished."""
    with Consumer(topic, group=f"{topic}-group", url=stack.query_url) as consumer:
        await asyncio.to_thread(consumer.poll, 0, max_messages=0)
        return sum(consumer.position((topic, queue_id)) or 0 for queue_id in range(2))


def test_an_async_consumer_has_all_calls_of_a_consumer() -> None:
    """`commit` is awaited in place of `commit_async`, and an iteration is `async for`."""
    calls = {name for name in vars(Consumer) if not name.startswith("_")} - {"commit_async"}
    assert {name for name in vars(AsyncConsumer) if not name.startswith("_")} == calls
    parameters = inspect.signature(Consumer.consume).parameters.keys()
    assert inspect.signature(AsyncConsumer.consume).parameters.keys() == parameters


def test_handlers_run_together_on_the_event_loop(stack: LocalStack) -> None:
    """Four wait for each other; their messages are committed when `stop` is set."""
    send(stack, "together", 8)

    async def main() -> None:
        together, handled, stop = asyncio.Barrier(4), [], asyncio.Event()

        async def handle(message: ReceivedMessage) -> None:
            async with asyncio.timeout(GENEROUS_S), together:
                handled.append(message.text())
            if len(handled) == 8:
                stop.set()

        async with consumer_of(stack, "together") as consumer:
            await consumer.consume(handle, workers=4, writer=stack.writer_address, stop=stop)
            assert sum((await consumer.lag()).values()) == 0
        assert sorted(handled) == [str(number) for number in range(8)]
        assert await committed(stack, "together") == 8

    asyncio.run(asyncio.wait_for(main(), GENEROUS_S))


def test_a_failed_message_is_retried(stack: LocalStack) -> None:
    """on_error runs on the event loop, with the handler's exception."""
    send(stack, "async-again", 1)

    async def main() -> None:
        failures: list[str] = []
        loop, stop = asyncio.get_running_loop(), asyncio.Event()

        async def handle(message: ReceivedMessage) -> None:
            await asyncio.sleep(0)
            if message.reconsume_times == 0:
                raise ValueError("the first time")
            stop.set()

        def on_error(_: ReceivedMessage, error: BaseException) -> None:
            assert asyncio.get_running_loop() is loop
            failures.append(str(error))

        async with consumer_of(stack, "async-again") as consumer:
            await consumer.consume(
                handle, first_delay_level=1, writer=stack.writer_address, on_error=on_error, stop=stop
            )
        assert failures == ["the first time"]

    asyncio.run(asyncio.wait_for(main(), GENEROUS_S))


@pytest.mark.parametrize("end", ["cancel", "close"])
def test_running_handlers_end_before_consume_does(stack: LocalStack, end: str) -> None:
    """Meanwhile other calls are refused; they would wait for the handler, which might wait for them."""
    topic = f"ends-by-{end}"
    send(stack, topic, 1)

    async def main() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()
        ended: list[str] = []

        async def handle(message: ReceivedMessage) -> None:
            begun.set()
            await go_on.wait()
            ended.append(message.text())

        consumer = consumer_of(stack, topic)
        consuming = asyncio.create_task(consumer.consume(handle, writer=stack.writer_address))
        await begun.wait()
        with pytest.raises(ValueError, match="handles messages"):
            await consumer.lag()
        if end == "cancel":
            consuming.cancel()
        closing = asyncio.create_task(consumer.close())
        await asyncio.sleep(0.3)
        assert not consuming.done()
        go_on.set()
        await asyncio.wait({consuming})
        await closing
        assert consuming.cancelled() == (end == "cancel")
        assert ended == ["0"]
        assert await committed(stack, topic) == 1

    asyncio.run(asyncio.wait_for(main(), GENEROUS_S))


def test_a_function_that_is_not_async_is_refused(stack: LocalStack) -> None:
    """Each message would fail with it."""

    async def main() -> None:
        async with consumer_of(stack, "not-async") as consumer:
            with pytest.raises(TypeError, match="must be an async function"):
                await consumer.consume(print)  # type: ignore[arg-type]

    send(stack, "not-async", 1)
    asyncio.run(main())


def test_positions_are_moved_and_queues_paused(stack: LocalStack) -> None:
    send(stack, "moves", 4)

    async def main() -> None:
        async with consumer_of(stack, "moves") as consumer:
            first = await consumer.poll(GENEROUS_S)
            await consumer.seek_all("earliest")
            one, *others = sorted(await consumer.assignment())
            await consumer.pause(*others)
            again = await consumer.poll(GENEROUS_S)
            assert [message.queue for message in again] == [one] * 2
            assert await consumer.position(one) == 2
            await consumer.resume(*others)
            page = await consumer.pull("moves", 1, 0)
            assert len(first) <= 4
            assert [message.text() for message in page.messages] == ["1", "3"]

    asyncio.run(asyncio.wait_for(main(), GENEROUS_S))
