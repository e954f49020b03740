"""Sends ranges of files by `sendfile`: their bytes pass from the page cache to the socket without entering the process.

uvicorn has no such way (`http.response.zerocopysend` of ASGI), so a request's scope has a function for it, as the
extension SEND_FILES, where the connection can use it: not over TLS.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable

from tidemark.read.cached import NotCachedError, cached_only, pread
from tidemark.read.file_run import FileRange
from tidemark.store.open_file import OpenFile

SEND_FILES = "tidemark.send_files"  # async (list[FileRange]) -> None, after `http.response.start` with a content-length
_LOOK_BYTES = 256 << 10  # distance of two looks at the page cache; the kernel reads ahead half of that and more


class FileSending:
    """Sends ranges of files to the socket of an asyncio transport, after the data that the transport already has.

    is_lost: returns True once the connection is lost. `wake` ends a wait then.
    """

    def __init__(self, transport: asyncio.Transport, is_lost: Callable[[], bool], progress_s: float) -> None:
        self._transport = transport
        self._is_lost = is_lost
        self._progress_s = progress_s
        self._loop = asyncio.get_running_loop()
        self._writable: asyncio.Future[None] | None = None

    async def send(self, pieces: Iterable[FileRange]) -> None:
        """Send *pieces*, or a part of them if the connection is lost.

        Raises TimeoutError if the client takes nothing for `progress_s` seconds, OSError if the connection or the file
        fails.
        """
        # A descriptor of our own, because the transport's is registered already. A thread may use it after a cancel.
        connection = OpenFile(os.dup(self._transport.get_extra_info("socket").fileno()))
        await self._wait_for_transport(connection)
        for piece in pieces:
            await self._send_piece(connection, piece)

    def wake(self) -> None:
        """End the wait for the client."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    async def _send_piece(self, connection: OpenFile, piece: FileRange) -> None:
        at, end = piece.offset, piece.offset + piece.size
        while at < end and not self._is_lost():
            try:
                at += await self._send_some(connection, piece, at, end - at)
            except BlockingIOError:
                await self._wait(connection)

    async def _send_some(self, connection: OpenFile, piece: FileRange, at: int, size: int) -> int:
        """Send bytes that are in the page cache at once, and others from a thread, which may wait for the disk."""
        if _is_cached(piece.file.descriptor, at, size):
            sent = _sendfile(connection, piece.file, at, size)
        else:
            sent = await asyncio.to_thread(_sendfile, connection, piece.file, at, min(size, _LOOK_BYTES))
        if sent == 0:
            raise OSError(f"a file of the store ends at {at}, before byte {at + size}")
        return sent

    async def _wait_for_transport(self, connection: OpenFile) -> None:
        """Wait until the transport has sent its own data, such as the answer's head."""
        await asyncio.sleep(0)
        while self._transport.get_write_buffer_size() and not self._is_lost():
            await self._wait(connection)
            await asyncio.sleep(0)

    async def _wait(self, connection: OpenFile) -> None:
        """Wait until the socket takes bytes, or the connection is lost."""
        self._writable = self._loop.create_future()
        self._loop.add_writer(connection.descriptor, self.wake)
        try:
            async with asyncio.timeout(self._progress_s):
                await self._writable
        finally:
            self._loop.remove_writer(connection.descriptor)
            self._writable = None


def _sendfile(connection: OpenFile, file: OpenFile, offset: int, size: int) -> int:
    return os.sendfile(connection.descriptor, file.descriptor, offset, size)


def _is_cached(descriptor: int, offset: int, size: int) -> bool:
    """Return True if the range seems to be in the page cache: at its ends, and in between every _LOOK_BYTES."""
    try:
        with cached_only():
            for at in range(offset, offset + size, _LOOK_BYTES):
                pread(descriptor, 1, at)
            pread(descriptor, 1, offset + size - 1)
    except NotCachedError:
        return False
    return True
