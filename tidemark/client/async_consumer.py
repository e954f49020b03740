"""AsyncConsumer: the same, to await."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tidemark.client.consumer import Consumer, Offsets, Place
from tidemark.client.received import ReceivedMessage, TopicQueue

if TYPE_CHECKING:
    import pyarrow as pa

R = TypeVar("R")


class AsyncConsumer:
    """A Consumer for asyncio; takes what `Consumer` takes. It works in a thread of its own, never on the event loop.

    A `poll` that is cancelled loses nothing: what it would have answered, the next one answers.
    """

    def __init__(self, topics: str | Iterable[str] = (), **settings: Any) -> None:
        self.consumer = Consumer(topics, **settings)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tidemark-consumer")
        self._cancelled: asyncio.Future[list[ReceivedMessage]] | None = None

    async def poll(self, timeout_s: float = 1.0, *, max_messages: int | None = None) -> list[ReceivedMessage]:
        """See `Consumer.poll`."""
        polled = self._cancelled or self._run(partial(self.consumer.poll, timeout_s, max_messages=max_messages))
        self._cancelled = None
        try:
            return await asyncio.shield(polled)
        except asyncio.CancelledError:
            if not polled.cancelled():
                self._cancelled = polled
            raise

    async def poll_table(self, timeout_s: float = 1.0) -> pa.Table | None:
        """See `Consumer.poll_table`. Do not cancel it."""
        return await self._run(partial(self.consumer.poll_table, timeout_s))

    async def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        """Messages one by one, for ever."""
        while True:
            for message in await self.poll(max_messages=1):
                yield message

    async def commit(self, offsets: Offsets | None = None) -> None:
        """See `Consumer.commit`."""
        await self._run(partial(self.consumer.commit, offsets))

    async def seek(self, queue: TopicQueue | tuple[str, int], place: Place) -> None:
        """See `Consumer.seek`."""
        await self._run(partial(self.consumer.seek, queue, place))

    async def close(self, *, commit: bool = True) -> None:
        """See `Consumer.close`."""
        await self._run(partial(self.consumer.close, commit=commit))
        self._thread.shutdown()

    def _run(self, call: Callable[[], R]) -> asyncio.Future[R]:
        return asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.close(commit=kind is None)
