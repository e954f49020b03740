"""An HTTP server that does nothing but send: `python -m benchmarks.bare_http BYTES` answers every GET with so many.

The same uvicorn as the query service's, without an application's work: what pulls could be at most on this machine.
Prints its port.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

Message = MutableMapping[str, Any]


def main(size: int) -> None:
    """Until it is ended."""
    body = memoryview(bytearray(size))
    headers = [(b"content-type", b"application/octet-stream"), (b"content-length", str(size).encode())]

    async def answer(
        scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    settings = uvicorn.Config(
        answer, loop="uvloop", http="httptools", ws="none", lifespan="off", access_log=False, log_level="warning"
    )
    uvicorn.Server(settings).run([listener])


if __name__ == "__main__":
    main(int(sys.argv[1]))
