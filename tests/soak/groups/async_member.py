"""A member on an event loop: its polls are cancelled at random, it seeks back at random, and it commits by itself."""

from __future__ import annotations

import asyncio
import time

from tests.soak.groups.members import Lives
from tests.soak.groups.recorder import Recorder
from tidemark.client import AsyncConsumer, TopicQueue
from tidemark.errors import StoreError

_POLL_S = 0.3
_CANCELLED, _SEEKS = 0.3, 0.03  # shares of the polls
_BACK = 20  # messages, at most


def poll_async(lives: Lives, recorder: Recorder) -> None:
    """Read on its own event loop for one membership."""
    asyncio.run(_Reading(lives, recorder).run())


class _Reading:
    """One membership. `_next` has, by queue, the offset after the last message that the program got."""

    def __init__(self, lives: Lives, recorder: Recorder) -> None:
        self._lives = lives
        self._recorder = recorder
        self._choice = lives.choice
        self._next: dict[TopicQueue, int] = {}

    async def run(self) -> None:
        end = self._lives.end()
        settings = {**self._lives.settings(self._recorder), "auto_commit": False}
        async with AsyncConsumer(**settings) as consumer:
            while time.monotonic() < end and not self._lives.stop.is_set():
                try:
                    await self._step(consumer)
                except StoreError as error:
                    self._recorder.raised(error)
                    await asyncio.sleep(_POLL_S)

    async def _step(self, consumer: AsyncConsumer) -> None:
        await self._poll(consumer)
        if self._choice.random() < _SEEKS:
            await self._seek_back(consumer)
        elif self._choice.random() < 0.2:
            await consumer.commit()

    async def _poll(self, consumer: AsyncConsumer) -> None:
        invoked = time.monotonic()
        polling = asyncio.create_task(consumer.poll(_POLL_S))
        if self._choice.random() < _CANCELLED:
            await asyncio.sleep(self._choice.choice((0, 0.002, 0.02, 0.2)))
            polling.cancel()
        try:
            messages = await polling
        except asyncio.CancelledError:
            return
        self._recorder.delivered("async", invoked, messages)
        self._next.update({message.queue: message.queue_offset + 1 for message in messages})

    async def _seek_back(self, consumer: AsyncConsumer) -> None:
        """Seek only to messages that it was given, so that a commit of the position stays true."""
        held = sorted(consumer.consumer.assignment & self._next.keys())
        if not held:
            return
        queue = self._choice.choice(held)
        place = max(0, self._next[queue] - self._choice.randrange(_BACK))
        try:
            await consumer.seek(queue, place)
        except KeyError:  # the queue has moved to another member meanwhile
            return
        self._next[queue] = place
        self._recorder.sought(queue, place)
