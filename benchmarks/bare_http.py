"""An HTTP server that only sends: `python -m benchmarks.bare_http BYTES` answers every GET with BYTES bytes.

It uses the same uvicorn as the query service without the application's work, to measure the upper bound of pulls on
this machine. With `BYTES FILE` it reads each answer from the next part of FILE and computes its CRC-32 before it sends
it, for the upper bound of pulls that check the bytes. It prints its port.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from itertools import cycle

from isal import isal_zlib

from benchmarks.serve_asgi import Message, Receive, Send, serve
from tidemark.read.buffers import POOL

Body = Callable[[], memoryview]


def main(size: int, file: str | None = None) -> None:
    """Serve until terminated."""
    body = _out_of_memory(size) if file is None else _out_of_file(size, file)
    headers = [(b"content-type", b"application/octet-stream"), (b"content-length", str(size).encode())]

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        data = body()
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    serve(answer)


def _out_of_memory(size: int) -> Body:
    data = memoryview(bytearray(size))
    return lambda: data


def _out_of_file(size: int, file: str) -> Body:
    """Return a reader like the query service's, which reuses its buffers."""
    opened = os.open(file, os.O_RDONLY)
    places = cycle(range(0, os.fstat(opened).st_size - size + 1, size))

    def read() -> memoryview:
        data = POOL.lend(size).data
        os.preadv(opened, [data], next(places))
        isal_zlib.crc32(data)
        return data

    return read


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
