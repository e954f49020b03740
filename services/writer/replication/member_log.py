"""MemberLog: bytes and checksums of a member's committed log, for its repair and for other members."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from isal.isal_zlib import crc32

from tidemark.errors import OffsetOutOfRangeError, OffsetTooSmallError
from tidemark.format.check import Checker, Crc
from tidemark.index.log_walk import LogWalk
from tidemark.store.mapped_file_queue import MappedFileQueue


class MemberLog:
    """A view of the log's files with a thread of its own. committed: returns the committed end.

    No file stays open after a call, because retention may delete it.

    All methods raise OffsetTooSmallError or OffsetOutOfRangeError for a range that is not committed here.
    """

    def __init__(self, log: MappedFileQueue, committed: Callable[[], int]) -> None:
        self._log = log
        self._committed = committed
        self._thread = ThreadPoolExecutor(1, "member-log")

    @property
    def committed(self) -> int:
        """The committed end."""
        return self._committed()

    def end_of_file(self, offset: int) -> int:
        """Return the end of the file that covers *offset*."""
        return self._log.file_start(offset) + self._log.file_size

    async def begin(self) -> int:
        """Return the physical offset at which the log begins."""
        return int(await self._in_thread(self._begin))

    def _begin(self) -> int:
        self._log.refresh()
        return self._log.min_offset

    async def read(self, begin: int, end: int) -> bytes:
        """Return the bytes of [begin, end)."""
        return bytes(await self._in_thread(self._read, begin, end))

    def _read(self, begin: int, end: int) -> bytes:
        self._require(begin, end)
        parts, at = [], begin
        while at < end:
            data = self._log.read(at, end - at)
            if not data:
                raise OffsetTooSmallError(
                    f"the log has no file for {at} any more", min_offset=self._log.min_offset, max_offset=self.committed
                )
            parts.append(data)
            at += len(data)
        return b"".join(parts)

    async def checksums(self, begin: int, end: int, step: int) -> list[int]:
        """Return the CRC-32 of each *step* bytes of [begin, end); the last may be shorter."""
        found: list[int] = await self._in_thread(self._checksums, begin, end, step)
        return found

    def _checksums(self, begin: int, end: int, step: int) -> list[int]:
        return [crc32(self._read(at, min(at + step, end))) for at in range(begin, end, step)]

    async def record_start(self, offset: int) -> int:
        """Return where the last readable record at or before *offset* begins; the file's start if there is none."""
        return int(await self._in_thread(self._record_start, offset))

    def _record_start(self, offset: int) -> int:
        found = self._log.file_start(offset)
        self._require(found, offset)
        walk = LogWalk(self._log, found, Checker(crc=Crc.OFF))
        for part in walk.parts(limit=min(self.committed, self.end_of_file(offset)), floor=self.committed):
            places = part.requests["physical_offset"]
            before = places[places <= offset]
            if before.size:
                found = int(before[-1])
            if part.end_offset > offset:
                break
        return found

    def _require(self, begin: int, end: int) -> None:
        if not self._log.covers(max(begin, end - 1)):
            self._log.refresh()
        bounds = {"min_offset": self._log.min_offset, "max_offset": self.committed}
        if begin < self._log.min_offset:
            raise OffsetTooSmallError(f"the log begins at {self._log.min_offset}, above {begin}", **bounds)
        if not begin <= end <= self.committed:
            raise OffsetOutOfRangeError(f"[{begin}, {end}) is not below the committed end {self.committed}", **bounds)

    async def _in_thread(self, call: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._call, call, *arguments)

    def _call(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        finally:
            self._log.close()

    def close(self) -> None:
        """Stop the thread."""
        self._thread.shutdown(wait=True)
