"""An HTTP server whose requests wait for each other: `python -m benchmarks.bare_waiting SIZE`.

A GET of `/QUEUE` is answered with SIZE bytes, the decimal NUMBER first, once another client gets `/QUEUE/NUMBER`, which
is answered at once. It does nothing else: the lower bound of what many waiting readers cost on this machine. It prints
its port.
"""

from __future__ import annotations

import asyncio
import sys

from benchmarks.serve_asgi import Message, Receive, Send, serve


def main(size: int) -> None:
    """Serve until terminated."""
    waiting: dict[str, asyncio.Future[bytes]] = {}
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % size)]

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        queue, _, number = scope["path"][1:].partition("/")
        body = number.encode().ljust(size)
        if number:
            waiting.pop(queue).set_result(body)
        else:
            waiting[queue] = asyncio.get_running_loop().create_future()
            body = await waiting[queue]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    serve(answer)


if __name__ == "__main__":
    main(int(sys.argv[1]))
