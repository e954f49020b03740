"""AsyncProducer: a Producer for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Unpack

from tidemark.client.message import Message
from tidemark.client.producer.producer import Producer
from tidemark.client.producer.producer_options import ProducerOptions
from tidemark.client.producer.send_options import (
    PlaceOptions,
    SendOptions,
    message_of,
    require_place_options,
    require_send_options,
)
from tidemark.client.send_result import SendResult
from tidemark.client.unknown_keywords import suggests_keywords
from tidemark.client.values import json_body
from tidemark.client.wire.answer_reader import AnswerReader
from tidemark.client.wire.loop_reader import awaited

if TYPE_CHECKING:
    from tidemark.client.producer.send_table import TableResult
    from tidemark.client.producer.table_columns import TableLike

_Start = Callable[[AnswerReader], Future[SendResult]]


class AsyncProducer:
    """A Producer for asyncio. No send blocks the event loop: one that would wait for anything does so in a thread.

    Sends that run at the same time may be stored in any order, because one that waits is overtaken. A program that
    needs an order must await each send.
    """

    def __init__(self, writers: str | Sequence[str] | None = None, **options: Unpack[ProducerOptions]) -> None:
        self.producer = Producer(writers, **options)

    async def send(
        self, message: Message | str, body: bytes | str | None = None, **options: Unpack[SendOptions]
    ) -> SendResult:
        """Send one message and return once it is acknowledged. See `Producer.send`."""
        if not options and type(message) is str and type(body) is bytes:
            future = None if (plain := self.producer._plain()) is None else plain.begin_on_loop(message, body)
            if future is not None:
                return await awaited(future)
        require_send_options(options, call="send")
        one = message_of(message, body, options, self.producer._serializer)
        return await self._answer(
            one.topic, len(one.body), lambda reader: self.producer._send(one, options, reader=reader)
        )

    async def send_json(self, topic: str, value: object, /, **options: Unpack[SendOptions]) -> SendResult:
        """Send *value* as JSON; see `Producer.send_json`."""
        return await self.send(topic, json_body(value), **options)

    async def send_oneway(
        self, message: Message | str, body: bytes | str | None = None, **options: Unpack[SendOptions]
    ) -> None:
        """Send one message and return once it is in flight. See `Producer.send_oneway`."""
        require_send_options(options, call="send_oneway")
        one = message_of(message, body, options, self.producer._serializer)
        await self._begin(
            one.topic, len(one.body), lambda reader: self.producer._send(one, options, once=True, reader=reader)
        )

    async def send_batch(self, messages: Iterable[Message], **options: Unpack[PlaceOptions]) -> SendResult:
        """Send several messages to one queue, all or none. See `Producer.send_batch`."""
        require_place_options(options, call="send_batch")
        batch = list(messages)
        topic = batch[0].topic if batch else ""
        size = sum(len(message.body) for message in batch)
        return await self._answer(topic, size, lambda reader: self.producer._begin_batch(batch, options, reader=reader))

    @suggests_keywords
    async def send_table(
        self,
        table: TableLike,
        topic: str,
        *,
        key: str | None = None,
        tag: str | None = None,
        body: str | None = None,
        unique_key: str | None = None,
        batch_size: int = 1000,
        on_acknowledged: Callable[[int], None] | None = None,
    ) -> TableResult:
        """Send every row of a table; a thread encodes it. See `Producer.send_table`."""
        return await asyncio.to_thread(
            self.producer.send_table,
            table,
            topic,
            key=key,
            tag=tag,
            body=body,
            unique_key=unique_key,
            batch_size=batch_size,
            on_acknowledged=on_acknowledged,
        )

    async def _answer(self, topic: str, size: int, start: _Start) -> SendResult:
        return await awaited(await self._begin(topic, size, start))

    async def _begin(self, topic: str, size: int, start: _Start) -> Future[SendResult]:
        if self.producer.would_wait(topic, size):
            return await asyncio.to_thread(start, AnswerReader.STREAM)
        return start(AnswerReader.LOOP)

    async def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until everything sent so far is acknowledged or has failed. See `Producer.flush`."""
        return await asyncio.to_thread(self.producer.flush, timeout_s)

    async def close(self) -> bool:
        """Wait for answers and close the connections. See `Producer.close`."""
        return await asyncio.to_thread(self.producer.close)

    async def __aenter__(self) -> AsyncProducer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
