"""Serving one ASGI function as the query service's uvicorn does, without anything else of it."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def serve(answer: Callable[[Message, Receive, Send], Awaitable[None]]) -> None:
    """On a free port of loopback, which is printed; until it is ended."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    settings = uvicorn.Config(
        answer, loop="uvloop", http="httptools", ws="none", lifespan="off", access_log=False, log_level="warning"
    )
    uvicorn.Server(settings).run([listener])
