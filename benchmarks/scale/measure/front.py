"""A front for several query services: passes a GET on to the one that `store` names, and its answer back as it comes.

`python -m benchmarks.scale.measure.front a=http://… b=http://…` prints its port. It is there to be measured, beside
clients that ask each service themselves.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

import httpx
import uvicorn

Message = MutableMapping[str, Any]
_HOP = (b"connection", b"transfer-encoding", b"keep-alive", b"date", b"server")  # of one connection


def main(stores: dict[str, str]) -> None:
    """Until it is ended. stores: address by name."""
    client = httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=64))

    async def answer(
        scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        asked = scope["query_string"].decode()
        url = f"{stores[parse_qs(asked)['store'][0]]}{scope['path']}?{asked}"
        headers = [header for header in scope["headers"] if header[0] in (b"accept", b"accept-encoding")]
        async with client.stream("GET", url, headers=headers) as answered:
            kept = [(name.lower(), value) for name, value in answered.headers.raw if name.lower() not in _HOP]
            await send({"type": "http.response.start", "status": answered.status_code, "headers": kept})
            async for part in answered.aiter_raw():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    settings = uvicorn.Config(
        answer, loop="uvloop", http="httptools", ws="none", lifespan="off", access_log=False, log_level="warning"
    )
    uvicorn.Server(settings).run([listener])


if __name__ == "__main__":
    main(dict(word.split("=", 1) for word in sys.argv[1:]))
