"""Network: the connections between members, and to etcd, through proxies that can be cut in each direction."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any

_PIECE_BYTES = 1 << 16


class Link:
    """The connections from one place to another. A cut holds the bytes; after it they all arrive, but late."""

    def __init__(self, host: str, port: int) -> None:
        self.port = 0
        self._server: asyncio.Server | None = None
        self._target = host, port
        self._there, self._back = asyncio.Event(), asyncio.Event()
        self._there.set()
        self._back.set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._there.wait()
            await self._forward(reader, writer)
        except OSError:
            return
        finally:
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target_reader, target_writer = await asyncio.open_connection(*self._target)
        ways = (
            asyncio.create_task(_pump(reader, target_writer, self._there)),
            asyncio.create_task(_pump(target_reader, writer, self._back)),
        )
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            target_writer.transport.abort()

    def cut(self, *, there: bool, back: bool) -> None:
        """Hold the bytes of these directions from now on."""
        for gate, is_cut in ((self._there, there), (self._back, back)):
            gate.clear() if is_cut else gate.set()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_PIECE_BYTES):
            await gate.wait()
            writer.write(data)
            await writer.drain()


class Network:
    """All links; its event loop runs in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._thread.start()
        self._links: dict[tuple[str, str], Link] = {}

    def port(self, source: str, target: str, target_port: int) -> int:
        """Return the port at which *source* reaches *target*, which listens on *target_port* of this machine."""
        link = self._links.get((source, target))
        if link is None:
            link = self._links[source, target] = self._run(self._open(target_port))
        return link.port

    async def _open(self, port: int) -> Link:
        link = Link("127.0.0.1", port)
        await link.start()
        return link

    def cut(self, source: str, target: str, *, there: bool = True, back: bool = True) -> None:
        """Cut what *source* sends to *target* and its answers, on connections that *source* opens."""
        self._loop.call_soon_threadsafe(lambda: self._links[source, target].cut(there=there, back=back))

    def heal(self) -> None:
        """End all cuts."""
        for source, target in self._links:
            self.cut(source, target, there=False, back=False)

    def targets(self, source: str) -> list[str]:
        """Return what *source* is linked to."""
        return [target for one, target in self._links if one == source]

    def _run(self, work: Coroutine[Any, Any, Link]) -> Link:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    def close(self) -> None:
        """End all connections and the loop."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        for link in self._links.values():
            link.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.05)  # until the connections are gone
