"""A proxy for several query services: forwards a GET to the service in the parameter `store`, and streams the answer.

`python -m benchmarks.scale.measure.front a=http://… b=http://…` prints its port. It is measured in comparison with
clients that query each service directly.
"""

from __future__ import annotations

import sys
from urllib.parse import parse_qs

import httpx

from benchmarks.serve_asgi import Message, Receive, Send, serve

_HOP = (
    b"connection",
    b"transfer-encoding",
    b"keep-alive",
    b"date",
    b"server",
)  # headers of one connection, which are not forwarded


def main(stores: dict[str, str]) -> None:
    """Serve until terminated. stores: address by name."""
    client = httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=64))

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        asked = scope["query_string"].decode()
        url = f"{stores[parse_qs(asked)['store'][0]]}{scope['path']}?{asked}"
        headers = [header for header in scope["headers"] if header[0] in (b"accept", b"accept-encoding")]
        async with client.stream("GET", url, headers=headers) as answered:
            kept = [(name.lower(), value) for name, value in answered.headers.raw if name.lower() not in _HOP]
            await send({"type": "http.response.start", "status": answered.status_code, "headers": kept})
            async for part in answered.aiter_raw():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    serve(answer)


if __name__ == "__main__":
    main(dict(word.split("=", 1) for word in sys.argv[1:]))
