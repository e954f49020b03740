"""CoroutineHandler: lets the threads of `Consumer.consume` run a coroutine function on an event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine

from tidemark.client.received_message import ReceivedMessage

AsyncHandler = Callable[[ReceivedMessage], Coroutine[None, None, object]]


class CoroutineHandler:
    """A handler that starts *function* on *loop* and waits for its end, in the thread that calls it.

    raises TypeError if *function* is no coroutine function
    """

    def __init__(self, function: AsyncHandler, loop: asyncio.AbstractEventLoop) -> None:
        require_coroutine_function(function)
        self._function = function
        self._loop = loop

    def __call__(self, message: ReceivedMessage) -> None:
        asyncio.run_coroutine_threadsafe(self._function(message), self._loop).result()


def require_coroutine_function(function: AsyncHandler) -> None:
    """Raise TypeError if *function* is no coroutine function."""
    if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)):
        raise TypeError(f"the handler of an AsyncConsumer must be an async function, not {function!r}")
