"""AsyncConsumer: a Consumer for asyncio."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tidemark.client.consumer.consumer import Consumer, Offsets, TakenTable
from tidemark.client.consumer.handout import Handout
from tidemark.client.consumer.start_offsets import Place
from tidemark.client.received_message import ReceivedMessage, TopicQueue

if TYPE_CHECKING:
    import pyarrow as pa

R = TypeVar("R")


T = TypeVar("T", Handout, TakenTable)


class AsyncConsumer:
    """A Consumer for asyncio, with the settings of `Consumer`. It works in its own thread, never on the event loop.

    Every call may be cancelled. Messages that a cancelled `poll`, `poll_table` or iteration has taken do not count as
    handed out: they are not committed, and the next `poll` returns them. A cancelled `seek` has no effect, unless it
    was already committing the new position. Polls of several tasks wait for each other.
    """

    def __init__(self, topics: str | Iterable[str] = (), **settings: Any) -> None:
        self.consumer = Consumer(topics, **settings)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tidemark-consumer")
        self._turn = asyncio.Lock()  # held by one poll until its messages are received or given back
        self._abandoned: threading.Event | None = None  # belongs to the current poll
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
        return _Messages(self)

    async def commit(self, offsets: Offsets | None = None) -> None:
        """See `Consumer.commit`."""
        await self._run(partial(self.consumer.commit, offsets))

    async def seek(self, queue: TopicQueue | tuple[str, int], place: Place) -> None:
        """See `Consumer.seek`."""
        targets = await self._run(partial(self.consumer._targets, [queue], place))
        await self._run(partial(self.consumer._move, targets))

    async def close(self, *, commit: bool = True) -> None:
        """See `Consumer.close`. A second call waits for the first one; another task's poll returns []."""
        if not self.consumer._process.is_this_one:
            return
        if self._closing is None:
            if self._abandoned is not None:
                self._abandoned.set()
                self.consumer._wake()
            self._closing = self._run(partial(self.consumer.close, commit=commit))
            self._closing.add_done_callback(lambda _: self._thread.shutdown(wait=False))
        await asyncio.shield(self._closing)

    def _run(self, call: Callable[[], R]) -> asyncio.Future[R]:
        self.consumer._process.require()  # a forked process has no such thread
        if self._closing is not None:
            raise ValueError("this consumer is closed")
        return asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.close(commit=kind is None)


class _Messages(AsyncIterator[ReceivedMessage]):
    """An iterator over messages. Unlike an async generator, it can continue after a cancelled step."""

    def __init__(self, consumer: AsyncConsumer) -> None:
        self._consumer = consumer

    async def __anext__(self) -> ReceivedMessage:
        while True:
            for message in await self._consumer.poll(max_messages=1):
                return message
