"""AsyncConsumer: a Consumer for asyncio."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from tidemark.client.answers import RecordsParameters
from tidemark.client.consumer.consumer import Consumer, Offsets, TakenTable
from tidemark.client.consumer.consumer_options import ConsumerOptions
from tidemark.client.consumer.coroutine_handler import AsyncHandler, CoroutineHandler
from tidemark.client.consumer.handout import Handout
from tidemark.client.consumer.start_offsets import Place
from tidemark.client.received_message import PulledPage, ReceivedMessage, TopicQueue

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.client.consumer.handler_pool import OnError

R = TypeVar("R")


T = TypeVar("T", Handout, TakenTable)


class AsyncConsumer:
    """A Consumer for asyncio, with the keywords of `Consumer`. It works in its own thread, never on the event loop.

    Every call may be cancelled. Messages that a cancelled `poll`, `poll_table` or iteration has taken do not count as
    handed out: they are not committed, and the next `poll` returns them. A cancelled `seek` has no effect, unless it
    was already committing the new position. Polls of several tasks wait for each other, other calls for the poll that
    runs. Functions given to the constructor are called in the consumer's thread.
    """

    def __init__(self, topics: str | Iterable[str] = (), **options: Unpack[ConsumerOptions]) -> None:
        self.consumer = Consumer(topics, **options)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tidemark-consumer")
        self._turn = asyncio.Lock()  # held by one poll until its messages are received or given back
        self._abandoned: threading.Event | None = None  # belongs to the current poll
        self._stop: threading.Event | None = None  # belongs to the current `consume`
        self._closing: asyncio.Future[None] | None = None

    async def poll(self, timeout_s: float = 1.0, *, max_messages: int | None = None) -> list[ReceivedMessage]:
        """See `Consumer.poll`."""
        began = time.monotonic()
        async with self._turn:
            handout = await self._take(
                lambda is_abandoned: self.consumer._take(timeout_s, max_messages, is_abandoned=is_abandoned)
            )
            return self.consumer._received(handout, began=began)

    async def poll_table(self, timeout_s: float = 1.0) -> pa.Table | None:
        """See `Consumer.poll_table`."""
        async with self._turn:
            taken = await self._take(
                lambda is_abandoned: self.consumer._take_table(timeout_s, is_abandoned=is_abandoned)
            )
            return self.consumer._received_table(taken)

    async def _take(self, take: Callable[[Callable[[], bool]], T]) -> T:
        """Call *take* in the thread. If this coroutine is cancelled, give the taken messages back in that thread.

        The thread runs calls in order, so a commit or seek after the cancellation sees unmoved positions.
        """
        taken: list[T] = []
        abandoned = self._abandoned = threading.Event()
        try:
            await self._run(lambda: taken.append(take(abandoned.is_set)))
        except BaseException:
            abandoned.set()
            self._give_back(taken)
            self.consumer._wake()
            raise
        return taken[0]

    def _give_back(self, taken: list[T]) -> None:
        def give_back() -> None:
            for one in taken:
                one.give_back()

        if self._closing is None:  # after `close` nothing is committed
            self._thread.submit(give_back)

    def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        """Yield messages one by one, without end. A cancelled or abandoned iteration loses no message."""
        return PolledMessages(lambda: self.poll(max_messages=1))

    async def pull(
        self, topic: str, queue_id: int, offset: int | str, **parameters: Unpack[RecordsParameters]
    ) -> PulledPage:
        """See `Consumer.pull`."""
        return await self._run(partial(self.consumer.pull, topic, queue_id, offset, **parameters))

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
        """Await *handler* for each message, *workers* at a time, until *stop* is set or the task is cancelled.

        In both cases the running handlers end first, and their messages are committed. Retries, dead letters and the
        other arguments: see `Consumer.consume`. Until the end, other calls than `close` raise ValueError.

        handler   an async function; it runs on the event loop
        on_error  called on the event loop
        """
        loop = asyncio.get_running_loop()
        halt = threading.Event()
        call = partial(
            self.consumer.consume,
            CoroutineHandler(handler, loop),
            workers=workers,
            ordered=ordered,
            max_attempts=max_attempts,
            first_delay_level=first_delay_level,
            writer=writer,
            on_error=None if on_error is None else lambda *failure: loop.call_soon_threadsafe(on_error, *failure),
            stop=halt,
        )
        async with self._turn:
            handling = self._run(call)
            self._stop = halt
            try:
                await _first_end(handling, stop)
            finally:
                halt.set()
                await asyncio.wait({handling})
                self._stop = None
            await handling

    async def commit(self, offsets: Offsets | None = None) -> None:
        """See `Consumer.commit`."""
        await self._run(partial(self.consumer.commit, offsets))

    async def seek(self, queue: TopicQueue | tuple[str, int], place: Place) -> None:
        """See `Consumer.seek`."""
        targets = await self._run(partial(self.consumer._targets, [queue], place))
        await self._run(partial(self.consumer._move, targets))

    async def seek_all(self, place: Place) -> None:
        """See `Consumer.seek_all`."""
        await self._run(partial(self.consumer.seek_all, place))

    async def pause(self, *queues: tuple[str, int]) -> None:
        """See `Consumer.pause`."""
        await self._run(partial(self.consumer.pause, *queues))

    async def resume(self, *queues: tuple[str, int]) -> None:
        """See `Consumer.resume`."""
        await self._run(partial(self.consumer.resume, *queues))

    async def lag(self) -> dict[TopicQueue, int]:
        """See `Consumer.lag`."""
        return await self._run(self.consumer.lag)

    async def assignment(self) -> frozenset[TopicQueue]:
        """See `Consumer.assignment`."""
        return await self._run(lambda: self.consumer.assignment)

    async def position(self, queue: tuple[str, int]) -> int | None:
        """See `Consumer.position`."""
        return await self._run(partial(self.consumer.position, queue))

    async def close(self, *, commit: bool = True) -> None:
        """See `Consumer.close`. A second call waits for the first one; another task's poll returns []."""
        if not self.consumer._process.is_this_one:
            return
        if self._closing is None:
            for running in (self._abandoned, self._stop):
                if running is not None:
                    running.set()
            self.consumer._wake()
            self._closing = self._submit(partial(self.consumer.close, commit=commit))
            self._closing.add_done_callback(lambda _: self._thread.shutdown(wait=False))
        await asyncio.shield(self._closing)

    def _run(self, call: Callable[[], R]) -> asyncio.Future[R]:
        if self._stop is not None:
            raise ValueError("this consumer handles messages: until `consume` ends, only `close` is possible")
        return self._submit(call)

    def _submit(self, call: Callable[[], R]) -> asyncio.Future[R]:
        self.consumer._process.require()  # a forked process has no such thread
        if self._closing is not None:
            raise ValueError("this consumer is closed")
        return asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.close(commit=kind is None)


async def _first_end(running: asyncio.Future[None], stop: asyncio.Event | None) -> None:
    """Wait until *running* ends or *stop* is set."""
    if stop is None:
        await asyncio.wait({running})
        return
    stopping = asyncio.ensure_future(stop.wait())
    waiting: set[asyncio.Future[Any]] = {running, stopping}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()


class PolledMessages(AsyncIterator[ReceivedMessage]):
    """The messages of *poll*, one by one. Unlike an async generator, it can continue after a cancelled step."""

    def __init__(self, poll: Callable[[], Awaitable[list[ReceivedMessage]]]) -> None:
        self._poll = poll

    async def __anext__(self) -> ReceivedMessage:
        while True:
            for message in await self._poll():
                return message
