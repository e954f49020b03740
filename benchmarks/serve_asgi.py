"""Serves one ASGI function with the uvicorn settings of the query service."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def serve(answer: Callable[[Message, Receive, Send], Awaitable[None]]) -> None:
    """Serve on a free loopback port, which is printed, until terminated."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    settings = uvicorn.Config(
        answer,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="critical",
        timeout_graceful_shutdown=1,  # s; requests may wait for ever
    )
    uvicorn.Server(settings).run([listener])
