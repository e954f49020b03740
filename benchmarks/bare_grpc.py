"""A gRPC server without a writer's work: `python -m benchmarks.bare_grpc [FILE]` prints its port.

It uses the same `grpc.aio` as the writer, to measure the upper bound of sends: a call gets its own bytes back, and each
message of a stream a short answer. With FILE it appends each message of a stream to this file, and answers after a
sync, one for all messages that came during the last one: what storage adds on this machine.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc

SERVICE, METHOD, STREAM = "bare.Echo", "Send", "Append"
_ANSWER = bytes(40)  # as long as the writer's answer to a batch
_FILE_BYTES = 1 << 40  # has holes, so that a write does not change the size


class _File:
    """The end of a file. Belongs to one event loop."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
        os.ftruncate(self._descriptor, _FILE_BYTES)
        self._end = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._syncing: asyncio.Task[None] | None = None

    def append(self, data: bytes) -> asyncio.Future[None]:
        """Write *data*; the result is there once it is synced."""
        os.pwrite(self._descriptor, data, self._end)
        self._end += len(data)
        stored = asyncio.get_running_loop().create_future()
        self._waiting.append(stored)
        if self._syncing is None:
            self._syncing = asyncio.create_task(self._sync())
        return stored

    async def _sync(self) -> None:
        while self._waiting:
            written, self._waiting = self._waiting, []
            await asyncio.to_thread(os.fdatasync, self._descriptor)
            for stored in written:
                stored.set_result(None)
        self._syncing = None


async def _answer(request: bytes, _: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
    return request


async def _answer_each(
    requests: AsyncIterator[bytes], _: grpc.aio.ServicerContext[bytes, bytes]
) -> AsyncIterator[bytes]:
    async for _request in requests:
        yield _ANSWER


def _answer_stored(file: _File) -> Any:
    """Return the handler of a stream whose messages are appended to *file*."""

    async def answer(requests: AsyncIterator[bytes], _: grpc.aio.ServicerContext[bytes, bytes]) -> AsyncIterator[bytes]:
        appended: asyncio.Queue[asyncio.Future[None] | None] = asyncio.Queue()

        async def append_all() -> None:
            async for request in requests:
                appended.put_nowait(file.append(request))
            appended.put_nowait(None)

        appending = asyncio.create_task(append_all())
        while (stored := await appended.get()) is not None:
            await stored
            yield _ANSWER
        await appending

    return answer


async def main(file: str | None = None) -> None:
    """Serve until terminated."""
    server: Any = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    handlers: dict[str, Any] = {
        METHOD: grpc.unary_unary_rpc_method_handler(_answer),
        STREAM: grpc.stream_stream_rpc_method_handler(_answer_each if file is None else _answer_stored(_File(file))),
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
