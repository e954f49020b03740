"""aiokafka: its producer and consumer for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from benchmarks.peers.python.load import TOPIC, Load
from benchmarks.peers.python.protocol import RECEIVE_S, Addresses


class AioKafka:
    """A producer and a consumer of all partitions.

    fetch_max_wait_ms is low, so that a fetch at the end of the topic does not delay the next pass.
    """

    def __init__(self, addresses: Addresses, _: Load) -> None:
        self._address = addresses["kafka"]
        self._failures: list[BaseException] = []

    async def open(self) -> None:
        self._producer = AIOKafkaProducer(bootstrap_servers=self._address)
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=self._address, enable_auto_commit=False, fetch_max_wait_ms=10
        )
        await self._producer.start()
        await self._consumer.start()
        partitions = await self._producer.partitions_for(TOPIC)
        self._consumer.assign([TopicPartition(TOPIC, partition) for partition in sorted(partitions)])

    async def send(self, body: bytes) -> None:
        await self._producer.send_and_wait(TOPIC, body)

    async def begin(self, body: bytes) -> None:
        future = await self._producer.send(TOPIC, body)
        future.add_done_callback(self._note)

    def _note(self, future: asyncio.Future[object]) -> None:
        failure = future.exception()
        if failure is not None:
            self._failures.append(failure)

    async def push(self) -> None:
        pass

    async def finish(self) -> None:
        await self._producer.flush()
        for failure in self._failures:
            raise failure

    async def rewind(self) -> None:
        await self._consumer.seek_to_beginning()

    async def receive(self) -> Sequence[bytes]:
        messages = await self._consumer.getmany(timeout_ms=int(RECEIVE_S * 1000))
        return [message.value for partition in messages.values() for message in partition]

    async def close(self) -> None:
        await self._consumer.stop()
        await self._producer.stop()
