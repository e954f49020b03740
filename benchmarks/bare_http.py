"""An HTTP server that does nothing but send: `python -m benchmarks.bare_http BYTES` answers every GET with so many.

The same uvicorn as the query service's, without an application's work: what pulls could be at most on this machine.
Prints its port.
"""

from __future__ import annotations

import sys

from benchmarks.serve_asgi import Message, Receive, Send, serve


def main(size: int) -> None:
    """Until it is ended."""
    body = memoryview(bytearray(size))
    headers = [(b"content-type", b"application/octet-stream"), (b"content-length", str(size).encode())]

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    serve(answer)


if __name__ == "__main__":
    main(int(sys.argv[1]))
