"""`python -m benchmarks.follow [READERS]`: the query service's processor time per message and follower (follow=true).

Messages of 1,024 bytes arrive one at a time; all readers follow one queue, so that each message goes to each of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time

import psutil

from tidemark.local.local_stack import QUERY
from tidemark.testing import TidemarkServer

_MESSAGES, _RATE, _PATIENCE_S = 60, 20.0, 60.0
_REQUEST = "GET /v1/topics/bench/queues/0/messages?follow=true&offset=latest HTTP/1.1\r\nHost: x\r\nAccept: {}\r\n\r\n"
_FORMS = ("application/x-ndjson", "text/event-stream", "application/octet-stream")
_MARK = b"x" * 1_000  # in each message, as text and in a record


class _Readers:
    """Followers in this process, and the number of messages that each has got."""

    def __init__(self, port: int, count: int, accept: str) -> None:
        self._port, self._accept = port, accept
        self.received = [0] * count
        self._tasks: list[asyncio.Task[None]] = []
        self._streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []  # a lost writer closes

    async def open(self) -> None:
        self._streams = [await asyncio.open_connection("127.0.0.1", self._port) for _ in self.received]
        for reader, writer in self._streams:
            writer.write(_REQUEST.format(self._accept).encode())
            await reader.readuntil(b"\r\n\r\n")
        self._tasks = [
            asyncio.create_task(self._read(number, reader)) for number, (reader, _) in enumerate(self._streams)
        ]

    async def _read(self, number: int, reader: asyncio.StreamReader) -> None:
        rest = b""  # a mark may arrive in two pieces
        while data := await reader.read(1 << 16):
            pieces = (rest + data).split(_MARK)
            self.received[number] += len(pieces) - 1
            rest = pieces[-1][1 - len(_MARK) :]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _measure(server: TidemarkServer, readers: int, accept: str) -> float:
    """Return microseconds of processor time per message and reader."""
    service = psutil.Process(server.stack.services[QUERY].pid)
    following = _Readers(server.stack.query_port, readers, accept)
    await following.open()
    before, began = sum(service.cpu_times()[:2]), time.monotonic()
    with server.producer() as producer:
        for number in range(_MESSAGES):
            await asyncio.to_thread(producer.send, "bench", _MARK + b"%24d" % number, queue_id=0)
            await asyncio.sleep(max(0.0, began + (number + 1) / _RATE - time.monotonic()))
    async with asyncio.timeout(_PATIENCE_S):
        while min(following.received) < _MESSAGES:  # noqa: ASYNC110 - counted by many tasks
            await asyncio.sleep(0.05)
    used = sum(service.cpu_times()[:2]) - before
    await following.close()
    return used / _MESSAGES / readers * 1e6


def main(readers: int) -> None:
    """Measure each form."""
    settings = {"TIDEMARK_QUERY_MAX_WAITING_PER_CLIENT": str(readers)}
    with TidemarkServer(settings=settings) as server:
        with server.producer() as producer:
            producer.send("bench", b"first", queue_id=0)
        server.wait_until_visible()
        for accept in _FORMS:
            used_us = asyncio.run(_measure(server, readers, accept))
            print(f"{accept}: {used_us:.0f} µs per message and reader, {readers} readers")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
