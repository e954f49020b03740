"""AsyncProducer: the same, to await."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from tidemark.client.message import Message
from tidemark.client.producer import Producer
from tidemark.client.send_result import SendResult

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from tidemark.client.send_table import TableResult


class AsyncProducer:
    """A Producer for asyncio. Sends that would wait for room or for a route do so in a thread, not on the loop."""

    def __init__(
        self, address: str | None = None, *, timeout_s: float = 10.0, max_in_flight_bytes: int = 16 << 20
    ) -> None:
        self.producer = Producer(address, timeout_s=timeout_s, max_in_flight_bytes=max_in_flight_bytes)

    async def send(
        self,
        topic: str,
        body: Message | bytes | str,
        *,
        key: str | None = None,
        keys: Sequence[str] = (),
        tag: str | None = None,
        properties: Mapping[str, str] | None = None,
        queue_id: int | None = None,
        request_id: str | None = None,
    ) -> SendResult:
        """Send one message; returns when it is acknowledged. See `Producer.send`."""

        def start() -> Future[SendResult]:
            return self.producer.send_async(
                topic,
                body,
                key=key,
                keys=keys,
                tag=tag,
                properties=properties,
                queue_id=queue_id,
                request_id=request_id,
            )

        return await self._answer(topic, len(body.body if isinstance(body, Message) else body), start)

    async def send_batch(
        self, topic: str, messages: Iterable[Message], *, queue_id: int | None = None, request_id: str | None = None
    ) -> SendResult:
        """Send several messages to one queue, all or none. See `Producer.send_batch`."""
        batch = list(messages)
        size = sum(len(message.body) for message in batch)
        return await self._answer(
            topic,
            size,
            lambda: self.producer.send_batch_async(topic, batch, queue_id=queue_id, request_id=request_id),
        )

    async def send_table(
        self,
        table: pa.Table | pd.DataFrame,
        topic: str,
        *,
        key: str | None = None,
        tag: str | None = None,
        body: str | None = None,
        batch_size: int = 1000,
    ) -> TableResult:
        """Send every row of a table, packing in a thread. See `Producer.send_table`."""
        return await asyncio.to_thread(
            self.producer.send_table, table, topic, key=key, tag=tag, body=body, batch_size=batch_size
        )

    async def _answer(self, topic: str, size: int, start: Callable[[], Future[SendResult]]) -> SendResult:
        waits = self.producer.would_wait(topic, size)
        return await asyncio.wrap_future(await asyncio.to_thread(start) if waits else start())

    async def close(self) -> None:
        """Wait for answers and end the connection."""
        await asyncio.to_thread(self.producer.close)

    async def __aenter__(self) -> AsyncProducer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
