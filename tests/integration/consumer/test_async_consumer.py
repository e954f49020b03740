"""AsyncConsumer, over real HTTP."""

from __future__ import annotations

import asyncio

from tests.integration.conftest import Served
from tidemark.client import AsyncConsumer, TopicQueue

Q0 = TopicQueue("orders", 0)


def test_messages_are_iterated(served: Served) -> None:
    served.put(b"a", b"b", b"c")

    async def read() -> list[bytes]:
        bodies = []
        async with AsyncConsumer(queues=[Q0], url=served.url) as consumer:
            async for message in consumer:
                bodies.append(message.body)
                if len(bodies) == 3:
                    break
        return bodies

    assert asyncio.run(read()) == [b"a", b"b", b"c"]


def test_a_cancelled_poll_loses_nothing(served: Served) -> None:
    """The next poll returns its messages."""

    async def read() -> list[bytes]:
        async with AsyncConsumer(queues=[Q0], url=served.url) as consumer:
            waiting = asyncio.create_task(consumer.poll(20))
            await asyncio.sleep(0.3)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert waiting.cancelled()
            served.put(b"a")
            return [message.body for message in await consumer.poll(10)]

    assert asyncio.run(read()) == [b"a"]


def test_a_poll_does_not_block_the_event_loop(served: Served) -> None:
    """Other tasks run while it waits."""

    async def read() -> int:
        turns = 0
        async with AsyncConsumer(queues=[Q0], url=served.url) as consumer:
            polling = asyncio.create_task(consumer.poll(0.5))
            while not polling.done():
                await asyncio.sleep(0.01)
                turns += 1
        return turns

    assert asyncio.run(read()) > 10
