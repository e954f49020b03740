"""AsyncMemoryProducer and AsyncMemoryConsumer: `AsyncProducer` and `AsyncConsumer` for a MemoryLog."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from tidemark.client.consumer.async_consumer import PolledMessages
from tidemark.client.consumer.consumer import Offsets
from tidemark.client.consumer.coroutine_handler import AsyncHandler, require_coroutine_function
from tidemark.client.consumer.start_offsets import Place
from tidemark.client.message import Message
from tidemark.client.producer.send_options import PlaceOptions, SendOptions
from tidemark.client.received_message import ReceivedMessage, TopicQueue
from tidemark.client.send_result import SendResult
from tidemark.testing.memory_consumer import GLANCE_S, MemoryConsumer
from tidemark.testing.memory_producer import MemoryProducer
from tidemark.testing.memory_topics import MemoryTopics

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.client.consumer.handler_pool import OnError
    from tidemark.client.producer.send_table import TableResult
    from tidemark.client.producer.table_columns import TableLike

T = TypeVar("T")


class AsyncMemoryProducer:
    """`AsyncProducer` for a MemoryLog, with the options of MemoryProducer."""

    def __init__(self, log: MemoryTopics, **options: Any) -> None:
        self.producer = MemoryProducer(log, **options)

    async def send(
        self, message: Message | str, body: bytes | str | None = None, **options: Unpack[SendOptions]
    ) -> SendResult:
        """Send one message; see `Producer.send`."""
        return self.producer.send(message, body, **options)

    async def send_json(self, topic: str, value: object, /, **options: Unpack[SendOptions]) -> SendResult:
        """Send *value* as JSON; see `Producer.send_json`."""
        return self.producer.send_json(topic, value, **options)

    async def send_oneway(
        self, message: Message | str, body: bytes | str | None = None, **options: Unpack[SendOptions]
    ) -> None:
        """Send one message without an answer."""
        self.producer.send_oneway(message, body, **options)

    async def send_batch(self, messages: Iterable[Message], **options: Unpack[PlaceOptions]) -> SendResult:
        """Send several messages of one topic to one queue, all or none."""
        return self.producer.send_batch(messages, **options)

    async def send_table(self, table: TableLike, topic: str, **options: Any) -> TableResult:
        """Send every row of a table; *options* are those of `Producer.send_table`."""
        return self.producer.send_table(table, topic, **options)

    async def flush(self, timeout_s: float | None = None) -> bool:
        """Return True: nothing waits for an answer."""
        return self.producer.flush(timeout_s)

    async def close(self) -> bool:
        """Close the producer; return True, as for `flush`."""
        return self.producer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncMemoryConsumer:
    """`AsyncConsumer` for a MemoryLog, with the options of MemoryConsumer. A cancelled call has no effect."""

    def __init__(self, log: MemoryTopics, topics: str | Iterable[str] = (), **options: Any) -> None:
        self.consumer = MemoryConsumer(log, topics, **options)

    async def poll(self, timeout_s: float = 1.0, *, max_messages: int | None = None) -> list[ReceivedMessage]:
        """Return the next messages; wait up to *timeout_s* for the first; see `Consumer.poll`."""
        if max_messages == 0:
            return self.consumer.poll(0, max_messages=0)
        return await _until(lambda: self.consumer.poll(0, max_messages=max_messages), timeout_s)

    async def poll_table(self, timeout_s: float = 1.0) -> pa.Table | None:
        """Poll a table; see `Consumer.poll_table`."""
        return await _until(lambda: self.consumer.poll_table(0), timeout_s)

    def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        return PolledMessages(lambda: self.poll(max_messages=1))

    async def consume(
        self,
        handler: AsyncHandler,
        *,
        workers: int = 8,
        ordered: bool = False,
        max_attempts: int = 16,
        first_delay_level: int = 3,
        writer: str | None = None,
        on_error: OnError | None = None,
        stop: asyncio.Event | None = None,
    ) -> None:
        """Await *handler* for each message until *stop* is set; otherwise as `MemoryConsumer.consume`."""
        require_coroutine_function(handler)
        self.consumer.require_shared_group()
        while stop is None or not stop.is_set():
            messages = await self.poll(0 if stop is None else GLANCE_S, max_messages=1)
            for message in messages:
                await self._handle(message, handler, max_attempts, on_error)
            self.consumer.commit()
            if not messages and stop is None:
                return

    async def _handle(
        self, message: ReceivedMessage, handler: AsyncHandler, max_attempts: int, on_error: OnError | None
    ) -> None:
        for attempt in range(max_attempts):
            try:
                await handler(message.replace(reconsume_times=attempt))
                return
            except Exception as error:
                if on_error is not None:
                    on_error(message, error)
        self.consumer.store_dead_letter(message, max_attempts)

    async def commit(self, offsets: Offsets | None = None) -> None:
        """Commit *offsets*, or else the positions after all handed-out messages. ValueError without a group."""
        self.consumer.commit(offsets)

    async def seek(self, queue: TopicQueue | tuple[str, int], place: Place) -> None:
        """Continue at *place* in one of its queues. With auto_commit, the position is committed."""
        self.consumer.seek(queue, place)

    async def seek_all(self, place: Place) -> None:
        """Continue at *place* in every queue that this consumer reads."""
        self.consumer.seek_all(place)

    async def pause(self, *queues: tuple[str, int]) -> None:
        """Hand out no messages of *queues* until `resume`."""
        self.consumer.pause(*queues)

    async def resume(self, *queues: tuple[str, int]) -> None:
        """Hand out messages of *queues* again."""
        self.consumer.resume(*queues)

    async def lag(self) -> dict[TopicQueue, int]:
        """Return the number of messages that are not handed out yet, by queue."""
        return self.consumer.lag()

    async def assignment(self) -> frozenset[TopicQueue]:
        """Return the queues that this consumer reads; none before the first `poll`."""
        return self.consumer.assignment

    async def position(self, queue: tuple[str, int]) -> int | None:
        """Return the queue offset of the next message to hand out."""
        return self.consumer.position(queue)

    async def close(self, *, commit: bool = True) -> None:
        """Leave the group. With auto_commit, first commit all handed-out messages, unless *commit* is False."""
        self.consumer.close(commit=commit)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.close(commit=kind is None)


async def _until(poll: Callable[[], T], timeout_s: float) -> T:
    """Call *poll* until it returns something, at most *timeout_s*; return its last result."""
    deadline = time.monotonic() + timeout_s
    while not (found := poll()) and time.monotonic() < deadline:  # noqa: ASYNC110 - other threads send as well
        await asyncio.sleep(GLANCE_S)
    return found
