"""A RemotingServer on the test's event loop, whose clock a test can advance, and clients of it."""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.waiting import until_async
from tidemark.access.guard import Guard
from tidemark.access.rate_limits import RateLimits
from tidemark.remoting import Frame, decode, encode, request, split
from tidemark.remoting.codes import Language
from tidemark.remoting_server.connection import Connection
from tidemark.remoting_server.exchange import Exchange, Handler
from tidemark.remoting_server.server import RemotingServer
from tidemark.remoting_server.settings import ConnectionLimits
from tidemark.tls.reloading import Reloading

LONG_S = 20.0
LIMITS = ConnectionLimits(
    connections=100, frame_bytes=1 << 20, frame_s=60.0, idle_s=120.0, write_s=20.0, in_flight=8, unsent_bytes=1 << 16
)
ECHO = 7  # a code whose handler answers with the fields and the body of the request


class ClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock is ahead of the real one by *ahead_s*."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


async def advance(seconds: float) -> None:
    """Advance the clock, and run the timers that are due."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ClockLoop)
    loop.ahead_s += seconds
    for _ in range(5):
        await asyncio.sleep(0)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run *test* on a ClockLoop."""
    with asyncio.Runner(loop_factory=ClockLoop) as runner:
        runner.run(asyncio.wait_for(test(), LONG_S * 100))


def anyone() -> Guard:
    """Return a guard without an access file."""
    return Guard(None, RateLimits(), None)


class Client:
    """One connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self._opaque = itertools.count(1)
        self._received = b""
        self._frames: list[Frame] = []

    async def send(
        self, code: int, fields: dict[str, str] | None = None, body: bytes = b"", *, one_way: bool = False
    ) -> int:
        """Send a request; return its opaque number."""
        opaque = next(self._opaque)
        await self.send_bytes(
            encode(request(code, fields, body, opaque=opaque, one_way=one_way, language=Language.JAVA))
        )
        return opaque

    async def send_bytes(self, data: bytes) -> None:
        """Send raw bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self) -> Frame:
        """Return the next frame. Raises ConnectionError if the server closes."""
        while not self._frames:
            data = await asyncio.wait_for(self._reader.read(1 << 16), LONG_S)
            if not data:
                raise ConnectionError("the server has closed the connection")
            self._received += data
            places, end = split(self._received)
            self._frames += [decode(self._received[start:stop]) for start, stop in places]
            self._received = self._received[end:]
        return self._frames.pop(0)

    async def call(self, code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> Frame:
        """Send a request and return its answer."""
        opaque = await self.send(code, fields, body)
        answer = await self.receive()
        assert answer.opaque == opaque
        return answer

    async def is_closed(self) -> bool:
        """Wait until the server closes or sends a frame; return True if it closes."""
        try:
            await self.receive()
        except ConnectionError:
            return True
        return False


class Served:
    """A running server. lost: the connections that have ended."""

    def __init__(self, limits: ConnectionLimits, guard: Guard, tls: Reloading | None) -> None:
        self.lost: list[Connection] = []
        self.server = RemotingServer(limits, guard, tls, self.lost.append)
        self._clients: list[Client] = []

    async def client(self, context: ssl.SSLContext | None = None, **more: Any) -> Client:
        """Return a new connection."""
        client = Client(*await asyncio.open_connection("127.0.0.1", self.server.port, ssl=context, **more))
        self._clients.append(client)
        return client

    async def connected(self, count: int = 1) -> list[Client]:
        """Return new connections that the server has accepted."""
        clients = [await self.client() for _ in range(count)]
        await until_async(lambda: self.server.connections >= count)
        return clients

    def close(self) -> None:
        """Close the clients."""
        for client in self._clients:
            client.writer.transport.abort()


def echo(exchange: Exchange) -> None:
    """Answer with the fields and the body of the request."""
    exchange.answer(0, dict(exchange.frame.fields), bytes(exchange.frame.body))


@asynccontextmanager
async def serving(
    handlers: Mapping[int, Handler] | None = None,
    *,
    guard: Guard | None = None,
    tls: Reloading | None = None,
    **limits: Any,
) -> AsyncIterator[Served]:
    """Run a server with *handlers* and an echo. limits: replace those of LIMITS."""
    served = Served(LIMITS._replace(**limits), guard or anyone(), tls)
    await served.server.bind("127.0.0.1:0")
    await served.server.start({ECHO: echo, **(handlers or {})})
    try:
        yield served
    finally:
        served.close()
        await served.server.stop(0)
        for _ in range(3):  # the transports close in later turns of the loop
            await asyncio.sleep(0)
