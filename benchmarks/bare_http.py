"""An HTTP server that does nothing but send: `python -m benchmarks.bare_http BYTES` answers every GET with so many.

The same uvicorn as the query service's, without an application's work: what pulls could be at most on this machine.
With `BYTES FILE` it reads each answer out of FILE, one place after the other, and takes its CRC-32 before it is sent:
what pulls could be whose bytes are looked at. Prints its port.
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
    """Until it is ended."""
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
    """As the query service reads: into buffers that are used again."""
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
