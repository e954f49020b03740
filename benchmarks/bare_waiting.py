"""An HTTP server whose requests wait for each other: `python -m benchmarks.bare_waiting SIZE`.

A GET of `/QUEUE` is answered with SIZE bytes, the decimal NUMBER first, once another client has got `/QUEUE/NUMBER`,
which is answered at once. It does nothing else: the lower bound of what many waiting readers cost on this machine. It
prints its port.
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict

from benchmarks.serve_asgi import Message, Receive, Send, serve


def main(size: int) -> None:
    """Serve until terminated."""
    numbers: dict[str, asyncio.Queue[str]] = defaultdict(asyncio.Queue)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % size)]

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        queue, _, number = scope["path"][1:].partition("/")
        if number:
            numbers[queue].put_nowait(number)
        else:
            number = await numbers[queue].get()
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": number.encode().ljust(size)})

    serve(answer)


if __name__ == "__main__":
    main(int(sys.argv[1]))
