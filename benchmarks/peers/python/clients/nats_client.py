"""nats-py: publishes to a JetStream stream, and an ordered push consumer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import nats
from nats.aio.msg import Msg

from benchmarks.peers.python.load import TOPIC, Load
from benchmarks.peers.python.protocol import RECEIVE_S, Addresses


class Nats:
    """A stream in files, its publisher, and a consumer that needs no acknowledgements."""

    def __init__(self, addresses: Addresses, _: Load) -> None:
        self._address = addresses["nats"]
        self._failures: list[BaseException] = []
        self._bodies: list[bytes] = []
        self._arrived = asyncio.Event()

    async def open(self) -> None:
        self._connection = await nats.connect(self._address)
        self._stream = self._connection.jetstream()
        await self._stream.add_stream(name=TOPIC, subjects=[TOPIC])

    async def send(self, body: bytes) -> None:
        await self._stream.publish(TOPIC, body)

    async def begin(self, body: bytes) -> None:
        future = await self._stream.publish_async(TOPIC, body)
        future.add_done_callback(self._note)

    def _note(self, future: asyncio.Future[object]) -> None:
        failure = future.exception()
        if failure is not None:
            self._failures.append(failure)

    async def push(self) -> None:
        pass

    async def finish(self) -> None:
        await self._stream.publish_async_completed()
        for failure in self._failures:
            raise failure

    async def rewind(self) -> None:
        await self._stream.subscribe(TOPIC, ordered_consumer=True, cb=self._add)

    async def _add(self, message: Msg) -> None:
        self._bodies.append(message.data)
        self._arrived.set()

    async def receive(self) -> Sequence[bytes]:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RECEIVE_S):
                await self._arrived.wait()
        self._arrived.clear()
        bodies, self._bodies = self._bodies, []
        return bodies

    async def close(self) -> None:
        await self._connection.close()
