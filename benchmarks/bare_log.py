"""A log with the least work: `python -m benchmarks.bare_log FOLDER sync|async`, the floor of the rows python_*.

One asyncio process writes each message to a log and a few bytes to a journal, as the writer does, in mode sync syncs
both, answers, and passes the message to the subscribers. It has no topics, queues, index, checks or other processes.
It prints its port.

Frames, in both directions: kind (1 byte), length (4 bytes, big-endian), body. An append of n messages, each with its
length (4 bytes), is answered with an empty frame; a subscriber gets the appends of all others as they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
import sys
from pathlib import Path

HEAD = struct.Struct(">cI")
APPEND, SUBSCRIBE = b"a", b"s"
_JOURNAL_ENTRY = bytes(32)
_LOG_BYTES = 1 << 30


class BareLog:
    """The two files, and the subscribers."""

    def __init__(self, folder: Path, *, is_synced: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._is_synced = is_synced
        self._log, self._journal = (os.open(folder / name, os.O_RDWR | os.O_CREAT) for name in ("log", "journal"))
        os.ftruncate(self._log, _LOG_BYTES)
        self._end = 0
        self.subscribers: set[asyncio.Transport] = set()

    def append(self, data: bytes) -> None:
        """Append frames of messages."""
        os.pwrite(self._journal, _JOURNAL_ENTRY, 0)
        os.pwrite(self._log, data, self._end)
        self._end += len(data)
        if self._is_synced:
            os.fdatasync(self._journal)
            os.fdatasync(self._log)
        for subscriber in self.subscribers:
            subscriber.write(data)


class _Connection(asyncio.Protocol):
    def __init__(self, log: BareLog) -> None:
        self._log = log
        self._rest = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of TCP
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._log.subscribers.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        at = appends = 0
        while len(data) - at >= HEAD.size:
            kind, length = HEAD.unpack_from(data, at)
            if len(data) - at < HEAD.size + length:
                break
            at += HEAD.size + length
            appends += kind == APPEND
            if kind == SUBSCRIBE:
                self._log.subscribers.add(self._transport)
        self._rest = data[at:]
        if appends:
            self._log.append(data[:at])
            self._transport.write(HEAD.pack(APPEND, 0) * appends)


async def main(folder: Path, mode: str) -> None:
    """Serve until terminated."""
    log = BareLog(folder, is_synced=mode == "sync")
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(log), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
