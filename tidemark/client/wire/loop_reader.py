"""LoopReader: reads the answers of a stream on an asyncio event loop, so that no thread takes part in a task's send."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from tidemark.client.send_result import SendResult
from tidemark.client.wire.driven_future import Callback, LockedFuture
from tidemark.client.wire.frame_socket import FrameSocket


class LoopFuture(LockedFuture):
    """The future of a task's send. loop: the task's; on_failure: as for LockedFuture."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_failure: Sequence[Callback] = ()) -> None:
        super().__init__(on_failure)
        self.loop = loop


async def awaited(future: Future[SendResult]) -> SendResult:
    """Wait for *future* and return its result. A cancelled wait does not cancel it: its batch is in flight."""
    if not future.done():
        loop, loop_thread = asyncio.get_running_loop(), threading.get_ident()
        waiting = loop.create_future()

        def wake() -> None:
            if not waiting.done():
                waiting.set_result(None)

        def done(_: Future[SendResult]) -> None:
            if threading.get_ident() == loop_thread:
                wake()
                return
            with contextlib.suppress(RuntimeError):  # the loop is closed, and its task with it
                loop.call_soon_threadsafe(wake)

        future.add_done_callback(done)
        await waiting
    return future.result()


class LoopReader:
    """Calls functions of a stream on *loop*.

    read       called when there is something to read
    pass_time  called at the deadlines, and at least every *longest_wait_s* while something is in flight; returns the
               time.monotonic() of the next one, None if nothing is in flight
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        read: Callable[[], None],
        pass_time: Callable[[], float | None],
        longest_wait_s: float,
    ) -> None:
        self.loop = loop
        self._read = read
        self._pass_time = pass_time
        self._longest_wait_s = longest_wait_s
        self._watched: set[FrameSocket] = set()
        self._closing: set[FrameSocket] = set()  # to be closed on the loop
        self._timer: asyncio.TimerHandle | None = None
        self._event = 0.0  # time.monotonic() at which it fires

    def watch(self, connection: FrameSocket, deadline: float) -> bool:
        """Read *connection* until `close`. Return False if this loop cannot. Call it on the loop.

        deadline  time.monotonic() of a batch in flight
        """
        if connection not in self._watched:
            try:
                self.loop.add_reader(connection.fileno(), self._read)
            except NotImplementedError:  # Windows' default loop
                return False
            self._watched.add(connection)
        self.expect(deadline)
        return True

    def expect(self, event: float) -> None:
        """Call *pass_time* at *event*, a time.monotonic(), or earlier. Call it on the loop."""
        if self._timer is None or event < self._event:
            self._plan(event)

    def _plan(self, event: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        now = time.monotonic()
        self._event = min(max(now, event), now + self._longest_wait_s)
        self._timer = self.loop.call_later(self._event - now, self._tick)

    def _tick(self) -> None:
        self._timer = None
        event = self._pass_time()
        if event is not None:
            self._plan(event)

    def close(self, connection: FrameSocket) -> bool:
        """Close *connection* on the loop, after the loop has stopped to watch it. Safe from any thread.

        Return False if the loop does not watch it, or is closed.
        """
        if connection not in self._watched:
            return False
        self._closing.add(connection)
        try:
            self.loop.call_soon_threadsafe(self._close, connection)
        except RuntimeError:
            self._closing.discard(connection)
            return False
        return True

    def close_left(self) -> None:
        """Close the connections that the loop has left open, because it was closed before it ran `close`."""
        while self.loop.is_closed() and self._closing:
            self._closing.pop().close()

    def _close(self, connection: FrameSocket) -> None:
        self.loop.remove_reader(connection.fileno())
        self._watched.discard(connection)
        self._closing.discard(connection)
        connection.close()
