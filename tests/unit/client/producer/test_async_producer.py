"""AsyncProducer: it has all functions of Producer."""

from __future__ import annotations

import asyncio
import inspect

from tests.unit.client.fake_writer import FakeWriter
from tidemark.client import AsyncProducer, Message, Producer
from tidemark.client.producer.producer_options import ProducerOptions


def test_the_async_producer_accepts_the_keywords_of_the_producer() -> None:
    keywords = inspect.signature(Producer.__init__).parameters.keys() - {"self", "writers"}
    assert keywords == ProducerOptions.__annotations__.keys()


def test_the_async_producer_sends_singles_batches_and_oneway_messages(writer: FakeWriter) -> None:
    """It sends single messages, batches and one-way messages, and accumulates if configured."""

    async def run() -> list[int]:
        async with AsyncProducer(writer.address, accumulate=True) as producer:
            first = await producer.send("t", b"1", queue_id=0, tag="A")
            batch = await producer.send_batch([Message("t", b"2"), Message("t", b"3")], queue_id=0)
            await producer.send_oneway(Message("t", b"4"), queue_id=0)
            await producer.flush()
            many = await asyncio.gather(*(producer.send("t", b"5", queue_id=0) for _ in range(100)))
        return [first.queue_offset, batch.queue_offset, *(result.queue_offset for result in many)]

    assert asyncio.run(run()) == [0, 1, *range(4, 104)]
    assert [element.body for element in writer.stored[0][:4]] == [b"1", b"2", b"3", b"4"]
    assert len(writer.received) < 100
