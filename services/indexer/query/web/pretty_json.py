"""PrettyJson: with `pretty=1`, a JSON answer gets line feeds and indentation. No token of it changes."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
PARAMETER = b"pretty"
_ON, _OFF = frozenset({"1", "true", ""}), frozenset({"0", "false"})
_MOST_BYTES = 4 << 20  # of an answer that is indented; a larger one is not for human readers


class PrettyJson:
    """Takes the parameter `pretty` (1, true, or without a value) from each request, and indents its JSON answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or PARAMETER not in scope["query_string"]:
            await self._app(scope, receive, send)
            return
        given = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        wanted = [value for name, value in given if name == "pretty"]
        if len(wanted) != 1 or wanted[0] not in _ON | _OFF:  # the route refuses it
            await self._app(scope, receive, send)
            return
        rest = urlencode([(name, value) for name, value in given if name != "pretty"])
        scope = {**scope, "query_string": rest.encode("latin-1")}
        await self._app(scope, receive, _Indenting(send).send if wanted[0] in _ON else send)


class _Indenting:
    """Holds a JSON answer back until it is whole, then sends it indented. Other answers pass unchanged."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = bytearray()

    async def send(self, message: Message) -> None:
        """Take a message of the application."""
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            is_json = headers.get("content-type", "").startswith(("application/json", "application/problem+json"))
            if is_json and int(headers.get("content-length", 0)) <= _MOST_BYTES:
                self._start = message
                return
        elif self._start is not None and message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_indented(self._start)
            return
        await self._send(message)

    async def _send_indented(self, start: Message) -> None:
        body = await asyncio.to_thread(indented, bytes(self._body))  # 4 MiB would hold up other requests
        headers = MutableHeaders(raw=list(start["headers"]))
        headers["content-length"] = str(len(body))
        await self._send({**start, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": body})


def indented(text: bytes) -> bytes:
    """Return the JSON document *text* with two blanks per level, and a line feed at its end."""
    pieces: list[bytes] = []
    depth = 0
    previous = b""
    for token in _TOKEN.findall(text):
        if token in (b"}", b"]"):
            depth -= 1
            if previous not in (b"{", b"["):
                pieces.append(_line(depth))
        elif previous in (b"{", b"[", b","):
            pieces.append(_line(depth))
        pieces.append(b": " if token == b":" else token)
        if token in (b"{", b"["):
            depth += 1
        previous = token
    return b"".join(pieces) + b"\n"


def _line(depth: int) -> bytes:
    return b"\n" + b"  " * depth
